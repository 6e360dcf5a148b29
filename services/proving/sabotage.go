package proving

import "slices"

// Sabotage makes a part of the pipeline lie in every schedule, not just now and then. What lands must not
// depend on it (ARCHITECTURE, "The guard").
type Sabotage string

// The kinds of sabotage.
const (
	// SabotageAnalysis: the analyzer calls random pairs independent.
	SabotageAnalysis Sabotage = "analysis"
	// SabotageModels: the profiler predicts what makes no sense, NaN among it.
	SabotageModels Sabotage = "models"
	// SabotageProposals: enumerator, profiler and prioritizer propose nonsense.
	SabotageProposals Sabotage = "proposals"
)

// AllSabotage lists the kinds.
func AllSabotage() []Sabotage { return []Sabotage{SabotageAnalysis, SabotageModels, SabotageProposals} }

// Known says whether it is one of AllSabotage, or none.
func (s Sabotage) Known() bool { return s == "" || slices.Contains(AllSabotage(), s) }
