package page_test

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"slices"
)

const (
	// cell is the edge of the squares by which pictures are compared, in pixels. A letter is about as wide: how its edges are smoothed
	// moves the mean of a square by little, and where it stands by much.
	cell = 8
	// cellTolerance is by how much the mean of a square may differ in red, green or blue, of 255.
	cellTolerance = 8
	// mostColours is how many colours a picture has that is kept.
	mostColours = 64
)

// unlike returns the squares in which two pictures differ, and whether they have the same size.
func unlike(a, b *image.RGBA) (squares []image.Rectangle, sameSize bool) {
	if a.Rect.Size() != b.Rect.Size() {
		return nil, false
	}
	for y := 0; y < a.Rect.Max.Y; y += cell {
		for x := 0; x < a.Rect.Max.X; x += cell {
			square := image.Rect(x, y, x+cell, y+cell).Intersect(a.Rect)
			is, was := mean(a, square), mean(b, square)
			for i := range is {
				if math.Abs(is[i]-was[i]) > cellTolerance {
					squares = append(squares, square)
					break
				}
			}
		}
	}
	return squares, true
}

// mean returns the mean red, green and blue of a part of a picture, each of 255.
func mean(m *image.RGBA, of image.Rectangle) (sum [3]float64) {
	for y := of.Min.Y; y < of.Max.Y; y++ {
		row := m.Pix[m.PixOffset(of.Min.X, y):]
		for x := range of.Dx() {
			for i := range sum {
				sum[i] += float64(row[4*x+i])
			}
		}
	}
	for i := range sum {
		sum[i] /= float64(of.Dx() * of.Dy())
	}
	return sum
}

// shrunk returns a picture of the means of its squares of so many pixels.
func shrunk(m *image.RGBA, by int) *image.RGBA {
	if by <= 1 {
		return m
	}
	out := image.NewRGBA(image.Rect(0, 0, m.Rect.Dx()/by, m.Rect.Dy()/by))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			of := mean(m, image.Rect(x*by, y*by, (x+1)*by, (y+1)*by))
			out.SetRGBA(x, y, color.RGBA{uint8(of[0]), uint8(of[1]), uint8(of[2]), 255})
		}
	}
	return out
}

// plain returns a picture as pixels, from 0, 0 on.
func plain(m image.Image) *image.RGBA {
	out := image.NewRGBA(image.Rectangle{Max: m.Bounds().Size()})
	draw.Draw(out, out.Rect, m, m.Bounds().Min, draw.Src)
	return out
}

// marked returns a picture with a frame around each square.
func marked(m *image.RGBA, squares []image.Rectangle) *image.RGBA {
	out := plain(m)
	for _, s := range squares {
		inner := s.Inset(1)
		for y := s.Min.Y; y < s.Max.Y; y++ {
			for x := s.Min.X; x < s.Max.X; x++ {
				if !(image.Point{x, y}).In(inner) {
					out.SetRGBA(x, y, color.RGBA{255, 0, 255, 255})
				}
			}
		}
	}
	return out
}

// smoothed returns a picture with softer edges, as another way to draw letters gives.
func smoothed(m *image.RGBA) *image.RGBA {
	out := plain(m)
	for y := 1; y < m.Rect.Max.Y-1; y++ {
		for x := 1; x < m.Rect.Max.X-1; x++ {
			at := m.PixOffset(x, y)
			for i := at; i < at+3; i++ {
				around := int(m.Pix[i-4]) + int(m.Pix[i+4]) + int(m.Pix[i-m.Stride]) + int(m.Pix[i+m.Stride])
				out.Pix[i] = uint8((12*int(m.Pix[i]) + around) / 16)
			}
		}
	}
	return out
}

// small returns a picture in a few colours: those that stand for the most pixels and lie farthest from the others, so that a small mark
// keeps its own.
func small(m *image.RGBA) *image.Paletted {
	counts := map[color.RGBA]int{}
	for y := range m.Rect.Max.Y {
		for x := range m.Rect.Max.X {
			counts[m.RGBAAt(x, y)]++
		}
	}
	type one struct {
		color.RGBA
		weight float64
		// apart is the square of the distance to the nearest colour that is chosen.
		apart float64
		near  uint8
	}
	all := make([]one, 0, len(counts))
	for c, n := range counts {
		all = append(all, one{c, math.Sqrt(float64(n)), math.MaxFloat64, 0})
	}
	slices.SortFunc(all, func(a, b one) int {
		return int(b.R)<<16 + int(b.G)<<8 + int(b.B) - int(a.R)<<16 - int(a.G)<<8 - int(a.B)
	})
	var palette color.Palette
	for len(palette) < mostColours {
		var most one
		for _, c := range all {
			if score := min(c.apart, 1e9) * c.weight; score > min(most.apart, 1e9)*most.weight {
				most = c
			}
		}
		if most.apart == 0 {
			break
		}
		palette = append(palette, most.RGBA)
		for i, c := range all {
			r, g, b := float64(c.R)-float64(most.R), float64(c.G)-float64(most.G), float64(c.B)-float64(most.B)
			if d := r*r + g*g + b*b; d < c.apart {
				all[i].apart, all[i].near = d, uint8(len(palette)-1)
			}
		}
	}
	near := map[color.RGBA]uint8{}
	for _, c := range all {
		near[c.RGBA] = c.near
	}
	out := image.NewPaletted(m.Rect, palette)
	for y := range m.Rect.Max.Y {
		for x := range m.Rect.Max.X {
			out.SetColorIndex(x, y, near[m.RGBAAt(x, y)])
		}
	}
	return out
}
