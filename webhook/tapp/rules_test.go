package tapp

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/rule"
)

func TestName(t *testing.T) {
	for _, c := range []struct {
		name, tapp, spec, want string
	}{
		{"short", "web", "", ""},
		{"the longest", strings.Repeat("a", 61), "replicas: 10", ""},
		{"one too long", strings.Repeat("a", 61), "replicas: 11", "metadata.name: Invalid value: \"" + strings.Repeat("a", 61) +
			"\": instance 10 would have a pod name of 64 characters, and 63 are allowed; give the TApp a name of at most 60"},
		{"no instances yet", strings.Repeat("a", 61), "replicas: 0", ""},
		{"dots", "web.shop", "", ""},
		{"dots in DNS names", "web.shop", "serviceName: web",
			`metadata.name: Invalid value: "web.shop": with spec.serviceName each pod's name is a DNS label, which has no dots; give the TApp a name without them`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tapp, err := decodeTApp(objectNamed(t, c.tapp, c.spec))
			if err != nil {
				t.Fatal(err)
			}
			tappv1.Default(tapp)
			wantFindings(t, rule.Findings("Name", judgeName(tapp)), c.want)
		})
	}
}

func TestReplicas(t *testing.T) {
	testRule(t, "Replicas", []ruleCase{
		{"absent", "replicas: null", ""},
		{"none", "replicas: 0", ""},
		{"most", "replicas: 50000", ""},
		{"too many", "replicas: 50001", `spec.replicas: Invalid value: 50001: one TApp can have 50000 instances; split it into several`},
		{"negative", "replicas: -1", `spec.replicas: Invalid value: -1: it is negative; give 0 or more`},
	})
}

func TestServiceName(t *testing.T) {
	const advice = ": it is no name of a Service; give the name of a headless Service of this namespace: lower case letters, digits and dashes, at most 63"
	testRule(t, "ServiceName", []ruleCase{
		{"absent", "", ""},
		{"a label", "serviceName: web-2", ""},
		{"a domain", "serviceName: web.shop", `spec.serviceName: Invalid value: "web.shop"` + advice},
		{"upper case", "serviceName: Web", `spec.serviceName: Invalid value: "Web"` + advice},
	})
}

func TestSelector(t *testing.T) {
	testRule(t, "Selector", []ruleCase{
		{"absent", "", ""},
		{"of labels", "selector: {matchLabels: {app: web}}", ""},
		{"of expressions", "selector: {matchExpressions: [{key: app, operator: In, values: [web, shop]}]}", ""},
		{"with hashes of tkestack/tapp", "selector: {matchLabels: {app: web, tapp_template_hash_key: '1', tapp_uniq_hash_key: '2'}}", ""},
		{"empty", "selector: {}", `spec.selector: Required value: an empty selector would select every pod of the namespace; name labels that all templates have`},
		{"of hashes alone", "selector: {matchLabels: {tapp_uniq_hash_key: '2'}}",
			`spec.selector: Required value: an empty selector would select every pod of the namespace; name labels that all templates have`},
		{"nothing to take it from", "template: {spec: {containers: [{name: web, image: 'web:1'}]}}",
			`spec.template.metadata.labels: Required value: the selector is taken from them; give the template a label, such as app: web`},
		{"unknown operator", "selector: {matchExpressions: [{key: app, operator: Is}]}",
			`spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`},
		{"no values", "selector: {matchExpressions: [{key: app, operator: In}]}",
			`spec.selector.matchExpressions[0].values: Required value: must be specified when ` + "`operator` is 'In' or 'NotIn'"},
		{"misses a template", "templatePool: {canary: {metadata: {labels: {app: other, tapp_uniq_hash_key: v1-1}}}}",
			`spec.templatePool[canary].metadata.labels: Invalid value: "app=other": spec.selector (app=web) does not match these labels, so that the template's pods would not belong to the TApp; give the template the labels of the selector`},
		{"misses one without labels", "templatePool: {canary: {}}",
			`spec.templatePool[canary].metadata.labels: Invalid value: "": spec.selector (app=web) does not match these labels, so that the template's pods would not belong to the TApp; give the template the labels of the selector`},
		{"of ids", "selector: {matchLabels: {tapp_instance_key: '0'}}",
			`spec.selector: Invalid value: "tapp_instance_key=0": every instance has its own value of this label; leave it out of the selector, and out of the labels of the templates`},
		{"of hashes", "selector: {matchExpressions: [{key: tapp_uniq_hash_key, operator: Exists}]}",
			`spec.selector: Invalid value: "tapp_uniq_hash_key": every update changes the value of this label; leave it out of the selector`},
	})
}

func TestTemplateNames(t *testing.T) {
	const advice = ": a template's name has lower case letters, digits and dashes, at most 63, and begins and ends with a letter or digit; rename it, such as canary or v2"
	testRule(t, "TemplateNames", []ruleCase{
		{"good", "", ""},
		{"upper case", "templatePool: {Canary: {}}", `spec.templatePool[Canary]: Invalid value: "Canary"` + advice},
		{"dots", "templatePool: {v1.2: {}}", `spec.templatePool[v1.2]: Invalid value: "v1.2"` + advice},
		{"empty", "templatePool: {'': {}}", `spec.templatePool[]: Invalid value: ""` + advice},
		{"reserved", "templatePool: {default: {}}", `spec.templatePool[default]: Invalid value: "default": this name belongs to spec.template; give the template another one`},
	})
}

func TestTemplateReferences(t *testing.T) {
	const advice = ": there is no such template; add it to spec.templatePool, or name another one (there are: default, canary)"
	testRule(t, "TemplateReferences", []ruleCase{
		{"good", "{templates: {'0': canary, '7': default, '1': ''}, defaultTemplateName: canary, updateStrategy: {template: default}}", ""},
		{"of an instance", "templates: {'10': b, '9': a}", "spec.templates[9]: Not found: \"a\"" + advice + "\nspec.templates[10]: Not found: \"b\"" + advice},
		{"of what is no instance", "templates: {'01': a}", ""},
		{"default", "defaultTemplateName: blue", `spec.defaultTemplateName: Not found: "blue"` + advice},
		{"the tutorial's spelling", "DefaultTemplateName: blue", `spec.defaultTemplateName: Not found: "blue"` + advice},
		{"rolling", "updateStrategy: {template: blue}", `spec.updateStrategy.template: Not found: "blue"` + advice},
		{"many templates", "{templatePool: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}}, defaultTemplateName: x}",
			`spec.defaultTemplateName: Not found: "x": there is no such template; add it to spec.templatePool, or name another one (there are: default, a, b, c, d, e, ...)`},
	})
}

func TestInstanceIDs(t *testing.T) {
	const advice = `: it is no instance id; ids are whole numbers from 0 without leading zeros, such as "0" or "12"`
	testRule(t, "InstanceIDs", []ruleCase{
		{"good", "{templates: {'0': canary}, statuses: {'12': Killed}}", ""},
		{"leading zero", "templates: {'01': canary}", `spec.templates[01]: Invalid value: "01"` + advice},
		{"sign", "statuses: {'-1': Killed, '+1': Killed}", `spec.statuses[+1]: Invalid value: "+1"` + advice + "\n" + `spec.statuses[-1]: Invalid value: "-1"` + advice},
		{"word", "statuses: {all: Killed}", `spec.statuses[all]: Invalid value: "all"` + advice},
		{"too large for a number", "statuses: {'99999999999999999999': Killed}", `spec.statuses[99999999999999999999]: Invalid value: "99999999999999999999"` + advice},
	})
	for _, c := range []ruleCase{
		{"below replicas", "{templates: {'2': canary}, statuses: {'0': Killed}}", ""},
		{"one above", "templates: {'3': canary}", `spec.templates: instance 3 has an entry, and does not exist while spec.replicas is 3`},
		{"several above", "{templates: {'2': canary, '9': canary, '10': canary, '12': canary}, statuses: {'7': Killed}}",
			"spec.templates: instances 9-10,12 have entries, and do not exist while spec.replicas is 3\nspec.statuses: instance 7 has an entry, and does not exist while spec.replicas is 3"},
	} {
		t.Run(c.name, func(t *testing.T) { wantLines(t, adviseInstanceIDs(tapp(t, c.spec), nil), c.want) })
	}
}

func TestStatuses(t *testing.T) {
	testRule(t, "Statuses", []ruleCase{
		{"good", "statuses: {'0': Killed, '1': Running, '2': Succ}", ""},
		{"unknown", "statuses: {'0': Stopped}", `spec.statuses[0]: Invalid value: "Stopped": it is no status; Killed stops the instance, Running or no entry runs it`},
	})
	for _, c := range []ruleCase{
		{"effective", "statuses: {'0': Killed, '1': Running}", ""},
		{"without effect", "statuses: {'0': Failed, '1': Succ, '2': Failed}",
			"spec.statuses[0,2]: Failed has no effect; Killed stops an instance, Running or no entry runs it\nspec.statuses[1]: Succ has no effect; Killed stops an instance, Running or no entry runs it"},
	} {
		t.Run(c.name, func(t *testing.T) { wantLines(t, adviseStatuses(tapp(t, c.spec), nil), c.want) })
	}
}

func TestBudgets(t *testing.T) {
	const advice = ": no update could start; give a number above 0, or a percentage from 1% to 100%"
	testRule(t, "Budgets", []ruleCase{
		{"absent", "", ""},
		{"numbers", "updateStrategy: {maxUnavailable: 1000, forceUpdate: {maxUnavailable: 1}}", ""},
		{"percentages", "updateStrategy: {maxUnavailable: 1%, forceUpdate: {maxUnavailable: 100%}}", ""},
		{"zero", "updateStrategy: {maxUnavailable: 0}", "spec.updateStrategy.maxUnavailable: Invalid value: 0" + advice},
		{"zero percent", "updateStrategy: {maxUnavailable: 0%}", `spec.updateStrategy.maxUnavailable: Invalid value: "0%"` + advice},
		{"too much", "updateStrategy: {forceUpdate: {maxUnavailable: 101%}}", `spec.updateStrategy.forceUpdate.maxUnavailable: Invalid value: "101%"` + advice},
		{"a number as text", "updateStrategy: {forceUpdate: {maxUnavailable: '3'}}", `spec.updateStrategy.forceUpdate.maxUnavailable: Invalid value: "3"` + advice},
	})
}

func TestClaims(t *testing.T) {
	claim := func(name, rest string) string {
		return "volumeClaimTemplates: [{metadata: {name: " + name + "}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}" + rest + "]"
	}
	testRule(t, "Claims", []ruleCase{
		{"good", claim("data", ""), ""},
		{"no name", claim("", ""), `spec.volumeClaimTemplates[0].metadata.name: Required value: the claim is mounted by it; give it the name of a volume, such as data`},
		{"bad name", claim("Data", ""), `spec.volumeClaimTemplates[0].metadata.name: Invalid value: "Data": it is the name of a volume too: lower case letters, digits and dashes, at most 63; rename it, such as data`},
		{"twice, and empty", claim("data", ", {metadata: {name: data}}"), `
spec.volumeClaimTemplates[1].metadata.name: Duplicate value: "data": an earlier claim template has this name; give each its own
spec.volumeClaimTemplates[1].spec.accessModes: Required value: a claim needs an access mode, such as ReadWriteOnce
spec.volumeClaimTemplates[1].spec.resources.requests[storage]: Required value: a claim needs a size, such as 1Gi`},
	})
	shrinks := `spec.volumeClaimTemplates[0].spec.resources.requests[storage]: Invalid value: "1Gi": it was 2Gi, and a claim cannot shrink; give at least that`
	for _, c := range []struct {
		name, from, to, want string
		ready                metav1.ConditionStatus
		observed             int64
	}{
		{"equal", "1Gi", "1024Mi", "", metav1.ConditionTrue, 2},
		{"grows", "1Gi", "2Gi", "", metav1.ConditionTrue, 2},
		{"shrinks", "2Gi", "1Gi", shrinks, metav1.ConditionTrue, 2},
		{"takes back what claims have not got", "2Gi", "1Gi", "", metav1.ConditionFalse, 2},
		{"takes back what nobody has seen", "2Gi", "1Gi", "", metav1.ConditionTrue, 1},
		{"other class", "1Gi", "1Gi}}, storageClassName: fast, other: {a: {b: 1", `spec.volumeClaimTemplates[0]: Forbidden: only spec.resources.requests.storage can change, and only grow: the instances have their claims; create a new TApp for other claims`, metav1.ConditionFalse, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			sized := func(size string) *tappv1.TApp {
				return tapp(t, "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "+size+"}}}}]")
			}
			was := sized(c.from)
			was.Generation = 2
			was.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionReady, Status: c.ready, ObservedGeneration: c.observed}}
			wantFindings(t, rule.Findings("Claims", compareClaims(sized(c.to), was)), c.want)
		})
	}
}

func TestInitImages(t *testing.T) {
	with := func(containers string) *tappv1.TApp {
		return tapp(t, "templatePool: {canary: {metadata: {labels: {app: web}}, spec: {initContainers: ["+containers+"]}}}")
	}
	const warning = "spec.templatePool[canary].spec.initContainers[setup].image: an init container's new image takes effect when an instance's pod starts next; updating in place does not start it"
	for _, c := range []struct{ name, from, to, want string }{
		{"same", "{name: setup, image: 'setup:1'}", "{name: setup, image: 'setup:1'}", ""},
		{"new image", "{name: setup, image: 'setup:1'}", "{name: setup, image: 'setup:2'}", warning},
		{"new container", "{name: setup, image: 'setup:1'}", "{name: other, image: 'setup:2'}", ""},
		{"sidecar", "{name: setup, image: 'setup:1', restartPolicy: Always}", "{name: setup, image: 'setup:2', restartPolicy: Always}", ""},
	} {
		t.Run(c.name, func(t *testing.T) { wantLines(t, adviseInitImages(with(c.to), with(c.from)), c.want) })
	}
	t.Run("new template", func(t *testing.T) {
		wantLines(t, adviseInitImages(with("{name: setup, image: 'setup:2'}"), tapp(t, "templatePool: {}")), "")
		wantLines(t, adviseInitImages(with("{name: setup, image: 'setup:2'}"), nil), "")
	})
}
