package main

import (
	"image/color"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart has bars in groups if it has Groups, and lines otherwise.
type chart struct {
	Name, Title, X, Y string
	// Groups are what the values of the series are about, from left to right.
	Groups []string
	Series []series
	// Log10X makes the horizontal axis of lines logarithmic.
	Log10X bool
}

type series struct {
	Name string
	// Colour is the place of its colour in the palette, from 1 on; 0: that of the
	// series.
	Colour int
	// Values of bars, one for each group; a value of 0 is no bar.
	Values []float64
	// Points of lines.
	Points plotter.XYs
}

const (
	width  = 20 * vg.Centimeter
	height = 9 * vg.Centimeter
	// margin on each side; viewers may have wider letters.
	margin = 4 * vg.Millimeter
	// group is how wide all bars of one group are together.
	group = 2.1 * vg.Centimeter
)

// colours that can be told apart without seeing red or green (Okabe and Ito).
var colours = []color.Color{
	color.RGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff},
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
}

func (s series) colour(i int) color.Color {
	if s.Colour > 0 {
		i = s.Colour - 1
	}
	return colours[i%len(colours)]
}

func (c chart) draw(path string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	for _, style := range []*font.Font{
		&p.Title.TextStyle.Font, &p.Legend.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font,
	} {
		style.Variant = "Sans"
	}
	p.Title.Padding, p.Legend.Top, p.Legend.Left, p.Legend.Padding = vg.Millimeter*3, true, true, vg.Millimeter
	p.Legend.XOffs = vg.Millimeter * 3
	p.BackgroundColor = color.White
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.Gray{Y: 0xdd}
	p.Add(grid)
	var err error
	if len(c.Groups) > 0 {
		err = c.bars(p)
	} else {
		err = c.lines(p)
	}
	if err != nil {
		return err
	}
	p.Y.Min = 0
	// The legend stands above the data.
	p.Y.Max *= 1 + 0.1*float64(len(c.Series))
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.FillPolygon(color.White, []vg.Point{{}, {X: width}, {X: width, Y: height}, {Y: height}})
	p.Draw(draw.Crop(whole, margin, -margin, margin, -margin))
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

func (c chart) bars(p *plot.Plot) error {
	bar := group / vg.Length(len(c.Series))
	for i, s := range c.Series {
		chart, err := plotter.NewBarChart(plotter.Values(s.Values), bar)
		if err != nil {
			return err
		}
		chart.LineStyle.Width = 0
		chart.Color = s.colour(i)
		chart.Offset = bar * vg.Length(float64(i)-float64(len(c.Series)-1)/2)
		p.Add(chart)
		p.Legend.Add(s.Name, chart)
	}
	p.NominalX(c.Groups...)
	p.X.Min, p.X.Max = -0.5, float64(len(c.Groups))-0.5
	return nil
}

func (c chart) lines(p *plot.Plot) error {
	for i, s := range c.Series {
		line, points, err := plotter.NewLinePoints(s.Points)
		if err != nil {
			return err
		}
		line.Color, points.Color = s.colour(i), s.colour(i)
		line.Width, points.Shape = vg.Points(1.5), draw.CircleGlyph{}
		p.Add(line, points)
		p.Legend.Add(s.Name, line, points)
	}
	if c.Log10X {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.X.Min, p.X.Max = math.Max(p.X.Min, 1)/1.2, p.X.Max*1.2
	}
	return nil
}
