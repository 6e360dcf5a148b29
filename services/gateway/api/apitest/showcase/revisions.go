package main

import (
	"context"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

// revisions has the same difference between any two.
type revisions struct{}

// Differ implements api.Differ.
func (revisions) Differ(context.Context, string, view.Revision, view.Revision, int) (api.Patch, error) {
	return api.Patch{Cut: true, Text: []byte(`diff --git a/docs/guide.md b/docs/guide.md
index 3b18e512dba79e4c8300dd08aeb37f8e728b8dad..a042389697b8b1b3e6f0c2f3ad9f9a1bd9a0e9a0 100644
--- a/docs/guide.md
+++ b/docs/guide.md
@@ -1,4 +1,5 @@
 # A guide
 
-Ask somebody.
+Read the first chapter, <script>alert(1)</script> and all.
+` + "\u202e" + `Then ask somebody.
 The end.
diff --git a/docs/picture.png b/docs/picture.png
Binary files a/docs/picture.png and b/docs/picture.png differ
`)}, nil
}
