package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reasons as the planner's code has them: held instances, actions, conditions.
var reasons = regexp.MustCompile(`(?:\.wait\(|Reason: |[rR]eason\w*(?:, why)? +:?= |	Failed\w+ += |\.set\(s, tappv1\.\w+, (?:true|false), |return (?:false, )?|waiting\(|intent\{\w+, |deleteAt\(.*, )"([A-Z][a-z]+(?:[A-Z][a-z]+)*)"`)

// TestReasons: operations.md says of every reason of the planner what to do.
func TestReasons(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, room := range []string{"tapp", "inplace", "refusal"} {
		found, err := filepath.Glob("../../plan/" + room + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reasons.FindAllStringSubmatch(string(code), -1) {
			found[m[1]] = true
		}
	}
	if len(found) < 50 {
		t.Errorf("%d reasons found in the planner; want all of them", len(found))
	}
	for reason := range found {
		if !strings.Contains(string(page), "`"+reason+"`") {
			t.Errorf("operations.md does not tell of the reason %s", reason)
		}
	}
}
