//go:build !linux

package whatif

const limited, greedy = "", ""

func limits() string { return "" }
