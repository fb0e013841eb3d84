package tapp

import "testing"

func TestServiceName(t *testing.T) {
	const advice = ": it is no name of a Service; give the name of a headless Service of this namespace: lower case letters, digits and dashes, at most 63"
	testRule(t, "ServiceName", []ruleCase{
		{"absent", "", ""},
		{"a label", "serviceName: web-2", ""},
		{"a domain", "serviceName: web.shop", `spec.serviceName: Invalid value: "web.shop"` + advice},
		{"upper case", "serviceName: Web", `spec.serviceName: Invalid value: "Web"` + advice},
	})
}
