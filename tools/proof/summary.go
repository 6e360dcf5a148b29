package proof

// Summary is the last line of a campaign. Every broken promise is in one of its numbers, but for KnownFaults.
type Summary struct {
	Schedules int    `json:"schedules"`
	Seed      uint64 `json:"seed"`
	// Red are commits of the queue's that made something red, or that landed without a proof or in spite of
	// a hold.
	Red int `json:"red"`
	// Lost are landings and pushes of which log and mainline do not say the same, and records that leave out
	// what they answer or answer it twice.
	Lost int `json:"lost"`
	// Doubled landed twice.
	Doubled int `json:"doubled"`
	// Undecided changes were still pending when nothing more could happen, or schedules did not come to rest.
	Undecided int `json:"undecided"`
	// WronglyRejected were rejected, or ejected, though nothing spoke against them on the mainline as it stood, or were
	// passed by one that spoiled them when nobody else had landed since.
	WronglyRejected int `json:"wrongly_rejected"`
	Bypasses        int `json:"bypasses"`
	Crashes         int `json:"crashes"`
	StaleWrites     int `json:"stale_writes"`
	GuardRefusals   int `json:"guard_refusals"`
}

// Summary of schedules that began with a seed.
func (t Tally) Summary(seed uint64) Summary {
	return Summary{
		Schedules: t[Schedules], Seed: seed, Red: t[Red] + t[Unproven] + t[Unheeded], Lost: t[Lost] + t[Disordered], Doubled: t[Doubled],
		Undecided: t[Undecided], WronglyRejected: t[WronglyRejected] + t[WronglyEjected] + t[Overtaken],
		Bypasses: t[Bypasses], Crashes: t[Crashes], StaleWrites: t[StaleWrites], GuardRefusals: t[Refusals],
	}
}
