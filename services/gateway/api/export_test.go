package api

// RouteNames returns the method and the path of each route.
func RouteNames() (names [][2]string) {
	for _, r := range (&handler{}).routes() {
		names = append(names, [2]string{r.method, r.path})
	}
	return names
}
