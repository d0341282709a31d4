// Package picture draws layouts of ids.
package picture

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
)

// columns is how wide a picture may be.
const columns = 78

// A cell is one field in a picture, or the bits above all fields, which are 0.
type cell struct {
	name      string
	text      string // its width, and its tick
	high, low int    // numbers of its bits
}

// bits returns how many bits the cell stands for.
func (c cell) bits() int { return c.high - c.low + 1 }

// numbers returns those of the highest and the lowest bit, width columns apart.
func (c cell) numbers(width int) string {
	high := strconv.Itoa(c.high)
	if c.high == c.low {
		return pad(high, width)
	}
	low := strconv.Itoa(c.low)
	return pad(high, width-len(low)) + low
}

// least returns how many columns the cell needs, without its edges.
func (c cell) least() int {
	numbers := len(strconv.Itoa(c.high))
	if c.high != c.low {
		numbers += len(" ") + len(strconv.Itoa(c.low))
	}
	return max(len(c.name), len(c.text), numbers)
}

// Of draws the bits of an id in a layout, high bits first, in lines of
// at most 78 columns, for a font of one width: each field with its name, its
// width, the tick, and the numbers of its highest and lowest bit. The bits
// above the fields, which are 0, are drawn as such. Fields lie side by side and
// are as wide as their bits as far as there is room; where there is none, they
// stand one below the other. There is no newline after the last line.
func Of(l firn.Layout) string {
	if !l.IsValid() {
		return l.String()
	}
	cells := cellsOf(l)
	if widths, ok := spread(cells); ok {
		return row(cells, widths)
	}
	return column(cells)
}

func cellsOf(l firn.Layout) []cell {
	var cells []cell
	if n := l.Bits(); n < 64 {
		cells = append(cells, cell{"0", countBits(64 - n), 63, n})
	}
	for f := range l.Fields() {
		c := cell{f.Name, countBits(f.Width), f.Shift + f.Width - 1, f.Shift}
		if f.Name == "time" {
			c.text += " of " + tick(l)
		}
		cells = append(cells, c)
	}
	return cells
}

// tick is the unit of the time as the layout's text has it: 1ms.
func tick(l firn.Layout) string {
	_, after, _ := strings.Cut(l.String(), "@")
	return after[:strings.IndexAny(after, ",;")]
}

func countBits(n int) string {
	if n == 1 {
		return "1 bit"
	}
	return strconv.Itoa(n) + " bits"
}

// spread gives each cell the columns it needs, and those left over to whichever
// has fewest for its bits.
func spread(cells []cell) (widths []int, ok bool) {
	const edges = len("  |") // a space on both sides, and a line to the right
	room := columns - len("|")
	for _, c := range cells {
		widths = append(widths, c.least())
		room -= c.least() + edges
	}
	if room < 0 {
		return nil, false
	}
	for range room {
		poorest := 0
		for i, c := range cells {
			if (widths[i]+edges)*cells[poorest].bits() < (widths[poorest]+edges)*c.bits() {
				poorest = i
			}
		}
		widths[poorest]++
	}
	return widths, true
}

// row draws the cells side by side.
func row(cells []cell, widths []int) string {
	var numbers, top, names, texts, bottom strings.Builder
	for i, c := range cells {
		numbers.WriteString("  " + c.numbers(widths[i]) + " ")
		top.WriteString("┬" + strings.Repeat("─", widths[i]+2))
		names.WriteString("│ " + pad(c.name, widths[i]) + " ")
		texts.WriteString("│ " + pad(c.text, widths[i]) + " ")
		bottom.WriteString("┴" + strings.Repeat("─", widths[i]+2))
	}
	return strings.Join([]string{
		strings.TrimRight(numbers.String(), " "),
		"┌" + strings.TrimPrefix(top.String(), "┬") + "┐",
		names.String() + "│",
		texts.String() + "│",
		"└" + strings.TrimPrefix(bottom.String(), "┴") + "┘",
	}, "\n")
}

// column draws the cells one below the other, the bit numbers to the left.
func column(cells []cell) string {
	name, text := 0, 0
	for _, c := range cells {
		name, text = max(name, len(c.name)), max(text, len(c.text))
	}
	line := strings.Repeat("─", name+2) + "%s" + strings.Repeat("─", text+2)
	var b strings.Builder
	for i, c := range cells {
		left, middle, right := "├", "┼", "┤"
		if i == 0 {
			left, middle, right = "┌", "┬", "┐"
		}
		numbers := fmt.Sprintf("%2d", c.high)
		if c.high != c.low {
			numbers += ".." + strconv.Itoa(c.low)
		}
		fmt.Fprintf(&b, "       %s"+line+"%s\n", left, middle, right)
		fmt.Fprintf(&b, "%-6s │ %s │ %s │\n", numbers, pad(c.name, name), pad(c.text, text))
	}
	fmt.Fprintf(&b, "       └"+line+"┘", "┴")
	return b.String()
}

// pad adds spaces up to width. What is drawn is ASCII, a column each byte.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-len(s), 0))
}
