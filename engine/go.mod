module landfall.build/engine

go 1.26.0

require (
	github.com/cockroachdb/datadriven v1.0.3
	google.golang.org/protobuf v1.36.12
	landfall.build/events v0.0.0
	landfall.build/learning v0.0.0
)

require (
	github.com/pmezard/go-difflib v1.0.0 // indirect
	golang.org/x/tools v0.49.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)

replace (
	landfall.build/events => ../events
	landfall.build/learning => ../learning
)
