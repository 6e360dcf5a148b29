package ngboost

import "math"

// A score gives the loss and the natural gradient of one row. t is the modelled
// target (see modelled); mu and s = log σ are the parameters.
type score interface {
	loss(mu, s, t float64, censored bool) float64
	// gradient is the plain derivative of loss by mu and s.
	gradient(mu, s, t float64, censored bool) (dMu, dS float64)
	// natural is the gradient times the inverse of the rule's Riemannian metric.
	natural(mu, s, t float64, censored bool) (nMu, nS float64)
}

func scoreFor(d Distribution, r Rule) score {
	switch {
	case r == CRPS:
		return crps{}
	case d == LogNormal:
		return logNormalLog{}
	}
	return normalLog{}
}

const halfLog2Pi = 0.91893853320467274178

func density(z float64) float64    { return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) }
func cumulative(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// survival is 1−Φ(z), accurate where Φ(z) rounds to one.
func survival(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// normalLog is the negative log-likelihood of a normal.
type normalLog struct{}

func (normalLog) loss(mu, s, t float64, _ bool) float64 {
	z := (t - mu) * math.Exp(-s)
	return halfLog2Pi + s + z*z/2
}

func (normalLog) gradient(mu, s, t float64, _ bool) (dMu, dS float64) {
	inverse := math.Exp(-s)
	z := (t - mu) * inverse
	return -z * inverse, 1 - z*z
}

// The metric is diag(1/σ², 2).
func (normalLog) natural(mu, s, t float64, _ bool) (nMu, nS float64) {
	z := (t - mu) * math.Exp(-s)
	return mu - t, (1 - z*z) / 2
}

// logNormalLog is the negative log-likelihood of a lognormal, with the
// probability of outliving the cut as likelihood of a censored row.
type logNormalLog struct{}

// ridge keeps the metric and the survival of far censored rows away from zero.
const ridge = 1e-5

func (logNormalLog) loss(mu, s, t float64, censored bool) float64 {
	z := (t - mu) * math.Exp(-s)
	if censored {
		return -math.Log(survival(z) + ridge)
	}
	return halfLog2Pi + s + z*z/2 + t
}

// For censored rows this is the true derivative. The reference's derivative by
// s lacks a factor σ there, which a finite difference shows.
func (logNormalLog) gradient(mu, s, t float64, censored bool) (dMu, dS float64) {
	inverse := math.Exp(-s)
	z := (t - mu) * inverse
	if censored {
		hazard := density(z) / (survival(z) + ridge)
		return -hazard * inverse, -hazard * z
	}
	return -z * inverse, 1 - z*z
}

// The metric is diag(1/σ² + ridge, 2), for censored rows too.
func (r logNormalLog) natural(mu, s, t float64, censored bool) (nMu, nS float64) {
	dMu, dS := r.gradient(mu, s, t, censored)
	return dMu / (math.Exp(-2*s) + ridge), dS / 2
}

// crps is the continuous ranked probability score of a normal. For a censored
// row, the integral stops at the cut: beyond it nothing was observed.
type crps struct{}

func (crps) loss(mu, s, t float64, censored bool) float64 {
	sigma := math.Exp(s)
	z := (t - mu) / sigma
	below := cumulative(z)
	if censored {
		return sigma * (z*below*below + 2*below*density(z) - cumulative(math.Sqrt2*z)/math.Sqrt(math.Pi))
	}
	return sigma * (z*(2*below-1) + 2*density(z) - 1/math.Sqrt(math.Pi))
}

func (r crps) gradient(mu, s, t float64, censored bool) (dMu, dS float64) {
	below := cumulative((t - mu) * math.Exp(-s))
	if censored {
		dMu = -below * below
	} else {
		dMu = 1 - 2*below
	}
	return dMu, r.loss(mu, s, t, censored) + (t-mu)*dMu
}

// The metric is diag(2, σ²) / 2√π.
func (r crps) natural(mu, s, t float64, censored bool) (nMu, nS float64) {
	dMu, dS := r.gradient(mu, s, t, censored)
	return dMu * math.Sqrt(math.Pi), dS * 2 * math.Sqrt(math.Pi) * math.Exp(-2*s)
}

// meanLoss is the mean over the batch of the loss after a step of length scale
// against the direction (fMu, fS); batch holds row numbers.
func meanLoss(r score, m modelled, p parameters, step parameters, scale float64, batch []int32) float64 {
	var sum float64
	for _, i := range batch {
		sum += r.loss(p.mu[i]-scale*step.mu[i], p.s[i]-scale*step.s[i], m.target[i], m.censored != nil && m.censored[i])
	}
	return sum / float64(len(batch))
}

// parameters holds one value of each parameter, or of a step of each, per row.
type parameters struct{ mu, s []float64 }

func newParameters(rows int) parameters {
	return parameters{mu: make([]float64, rows), s: make([]float64, rows)}
}
