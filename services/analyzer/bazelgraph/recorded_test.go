package bazelgraph

const recordedPath = "testdata/bazel-4.2.3.pb"
