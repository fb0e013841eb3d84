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
