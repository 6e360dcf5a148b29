module landfall.build/learning

go 1.26.0

require (
	gonum.org/v1/gonum v0.17.0
	landfall.build/events v0.0.0
)

require golang.org/x/tools v0.30.0 // indirect

replace landfall.build/events => ../events
