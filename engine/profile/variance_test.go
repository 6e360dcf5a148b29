package profile

import "testing"

// TestM12TheVarianceBeyondTenDeviations is that of the truncated normal, whose hazard is Laplace's continued fraction.
func TestM12TheVarianceBeyondTenDeviations(t *testing.T) {
	d := Duration{Mean: 0, Std: 1}
	for a := 10.0; a < 60; a += 2.5 {
		tail := a
		for k := 200; k > 0; k-- {
			tail = a + float64(k)/tail
		}
		want := 1 + a*tail - tail*tail
		got := d.Beyond(a)
		if v := got.Std * got.Std; v/want > 1.001 || v/want < 0.999 {
			t.Errorf("beyond %g deviations the variance is %.6g, want %.6g (%.1f %%)", a, v, want, 100*(v/want-1))
		}
	}
}
