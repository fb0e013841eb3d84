package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// valuesFile is the chart's, from the top of the repository.
const valuesFile = "chart/values.yaml"

// valuesPage writes chart/README.md: each value with its default and its comment.
func valuesPage(out *bufio.Writer) error {
	text, err := os.ReadFile(valuesFile)
	if err != nil {
		return err
	}
	rows, err := valueRows(text)
	if err != nil {
		return fmt.Errorf("%s: %w", valuesFile, err)
	}
	fmt.Fprint(out, `# Helm chart of TApp

[README](../README.md#install) says how the image gets to a registry of yours, and installs the chart;
[docs/operations.md](../docs/operations.md) has upgrades, several replicas, certificates and alerts;
[docs/security.md](../docs/security.md) has each right that the chart gives, and why. After an installation
`+"`helm test tapp --namespace tapp-system`"+` says whether it works.

## Values

From [values.yaml](values.yaml); [values.schema.json](values.schema.json) says what is allowed, and Helm checks it.

| value | default | meaning |
|---|---|---|
`)
	for _, r := range rows {
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", r.path, r.value, r.meaning)
	}
	return nil
}

// row is one value of the chart.
type row struct{ path, value, meaning string }

// valueRows reads the values of a file in their order.
func valueRows(text []byte) ([]row, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is no map")
	}
	return rowsOf("", document.Content[0])
}

// rowsOf a map: a map below with comments of its own is taken apart, another one is a value.
func rowsOf(prefix string, node *yaml.Node) (out []row, err error) {
	above := ""
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		path, meaning := prefix+key.Value, prose(key.HeadComment)
		if isTakenApart(value) {
			above = ""
			if meaning != "" {
				out = append(out, row{path, "", meaning})
			}
			below, err := rowsOf(path+".", value)
			if err != nil {
				return nil, err
			}
			out = append(out, below...)
			continue
		}
		if meaning == "" && above != "" {
			meaning = "see above"
		} else {
			above = meaning
		}
		shown, err := shownValue(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, row{path, shown, meaning})
	}
	return out, nil
}

// isTakenApart says whether the values of a map are told one by one.
func isTakenApart(node *yaml.Node) bool {
	if node.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].HeadComment != "" || node.Content[i+1].Kind == yaml.ScalarNode && node.Content[i+1].Tag != "!!str" || isTakenApart(node.Content[i+1]) {
			return true
		}
	}
	return false
}

// prose is a comment as text.
func prose(comment string) string {
	var words []string
	for line := range strings.Lines(comment) {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	return strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(strings.Join(words, " "))
}

// shownValue is a value as JSON, which is YAML, too.
func shownValue(node *yaml.Node) (string, error) {
	var value any
	if err := node.Decode(&value); err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return "`" + strings.ReplaceAll(string(text), "|", "\\|") + "`", nil
}
