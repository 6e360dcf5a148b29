// Package matrix multiplies dense matrices.
package matrix

import "fmt"

// Matrix is a list of rows of one length.
type Matrix [][]float64

// New makes a matrix of zeros.
func New(rows, columns int) Matrix {
	m := make(Matrix, rows)
	for i := range m {
		m[i] = make([]float64, columns)
	}
	return m
}

// Times multiplies two matrices.
func (m Matrix) Times(n Matrix) (Matrix, error) {
	if len(m) == 0 || len(n) == 0 || len(m[0]) != len(n) {
		return nil, fmt.Errorf("%d columns do not go with %d rows", m.columns(), len(n))
	}
	product := New(len(m), len(n[0]))
	for i := range m {
		for j := range n[0] {
			for k := range n {
				product[i][j] += m[i][k] * n[k][j]
			}
		}
	}
	return product, nil
}

func (m Matrix) columns() int {
	if len(m) == 0 {
		return 0
	}
	return len(m[0])
}
