// Package mount removes what containers leave mounted.
package mount

import (
	"slices"
	"strings"
)

// below returns the mount points in a mountinfo file that are at or below one of the paths, the newest first.
func below(mountinfo string, paths []string) []string {
	// The kernel escapes characters that separate fields and lines.
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var found []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape.Replace(fields[4])
		if slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(point+"/", strings.TrimSuffix(path, "/")+"/") }) {
			found = append(found, point)
		}
	}
	slices.Reverse(found)
	return found
}
