package ngboost

import (
	"fmt"
	"math"
)

// Prediction is the predicted distribution of one target, in the target's unit.
type Prediction struct {
	Distribution Distribution
	// Mu and Sigma are mean and standard deviation of the target for Normal,
	// of its natural logarithm for LogNormal.
	Mu, Sigma float64
}

// Mean is the expected value.
func (p Prediction) Mean() float64 {
	if p.Distribution == LogNormal {
		return math.Exp(p.Mu + p.Sigma*p.Sigma/2)
	}
	return p.Mu
}

// Median is the value that half the outcomes are below.
func (p Prediction) Median() float64 {
	if p.Distribution == LogNormal {
		return math.Exp(p.Mu)
	}
	return p.Mu
}

// StandardDeviation is that of the target, not of its logarithm.
func (p Prediction) StandardDeviation() float64 {
	if p.Distribution == LogNormal {
		variance := p.Sigma * p.Sigma
		return math.Exp(p.Mu+variance/2) * math.Sqrt(math.Expm1(variance))
	}
	return p.Sigma
}

// RelativePoint is the guess whose expected relative error |guess−y|/y is
// smallest, for LogNormal; for Normal, where that does not exist, the median.
func (p Prediction) RelativePoint() float64 {
	if p.Distribution == LogNormal {
		return math.Exp(p.Mu - p.Sigma*p.Sigma)
	}
	return p.Mu
}

// Quantile is the value that a share of the outcomes is below; share is from 0
// to 1, and NaN comes of anything else.
func (p Prediction) Quantile(share float64) float64 {
	value := p.Mu - p.Sigma*math.Sqrt2*math.Erfcinv(2*share)
	if p.Distribution == LogNormal {
		return math.Exp(value)
	}
	return value
}

// Interval is the central interval that a share of the outcomes falls into.
func (p Prediction) Interval(share float64) (low, high float64) {
	return p.Quantile((1 - share) / 2), p.Quantile((1 + share) / 2)
}

// Below is the probability of an outcome of at most y.
func (p Prediction) Below(y float64) float64 {
	if p.Distribution == LogNormal {
		if y <= 0 {
			return 0
		}
		y = math.Log(y)
	}
	return cumulative((y - p.Mu) / p.Sigma)
}

// NLL is the negative log-likelihood of y, in nats; +∞ where y is impossible.
func (p Prediction) NLL(y float64) float64 {
	if p.Distribution == LogNormal {
		if !(y > 0) {
			return math.Inf(1)
		}
		return logNormalLog{}.loss(p.Mu, math.Log(p.Sigma), math.Log(y), false)
	}
	return normalLog{}.loss(p.Mu, math.Log(p.Sigma), y, false)
}

// String shows median and the central 90 %.
func (p Prediction) String() string {
	low, high := p.Interval(0.9)
	return fmt.Sprintf("%.4g (90 %%: %.4g to %.4g)", p.Median(), low, high)
}
