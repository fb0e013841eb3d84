package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// fleetReasons are constants.
var fleetReasons = regexp.MustCompile(`\tReason\w+ += "(\w+)"`)

// TestFleetReasons: operations.md says of every reason of AppSets what to do.
func TestFleetReasons(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range []string{"../../plan/appset/plan.go", "../../crd/workload/v1beta1/names.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fleetReasons.FindAllStringSubmatch(string(code), -1) {
			found++
			if !strings.Contains(string(page), "`"+m[1]+"`") {
				t.Errorf("operations.md does not tell of the reason %s", m[1])
			}
		}
	}
	if found < 15 {
		t.Errorf("%d reasons found; want all of them", found)
	}
}
