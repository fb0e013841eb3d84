package ids

import (
	"strconv"
	"strings"
)

// Instances names instances by their ascending ids: "instance 7", "instances 0-3,7".
func Instances(ids []int) string {
	if len(ids) == 1 {
		return "instance " + Ranges(ids)
	}
	return "instances " + Ranges(ids)
}

// Ranges writes ascending instance ids in short: "0-3,7". What would not fit
// into a message is counted: "0-3,7,... (12 more)".
func Ranges(ids []int) string {
	const most = 20
	var b strings.Builder
	for n, k := 0, 0; k < len(ids); n++ {
		if n == most {
			b.WriteString(",... (" + strconv.Itoa(len(ids)-k) + " more)")
			break
		}
		end := k
		for end+1 < len(ids) && ids[end+1] == ids[end]+1 {
			end++
		}
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(ids[k]))
		if end > k {
			b.WriteString("-" + strconv.Itoa(ids[end]))
		}
		k = end + 1
	}
	return b.String()
}

// Whys are sentences, each about some instances.
type Whys struct {
	order []string
	about map[string][]int
}

// Add an instance to those that a sentence is about; no sentence: nothing is added.
func (w *Whys) Add(why string, id int) {
	if why == "" {
		return
	}
	if w.about == nil {
		w.about = map[string][]int{}
	}
	if w.about[why] == nil {
		w.order = append(w.order, why)
	}
	w.about[why] = append(w.about[why], id)
}

// Texts are the sentences with their instances, such as "instances 0-1: ...", in the order
// in which they came.
func (w *Whys) Texts() []string {
	var out []string
	for _, why := range w.order {
		out = append(out, Instances(w.about[why])+": "+why)
	}
	return out
}
