package main

// clusters are the mutants of fleet: what is believed of a member, and what is written.
var clusters = []mutant{
	{"as-of-probe", "probe.go", "a probe that is answered counts as evidence that the cache is current",
		"	s.machine.Probed(began, s.clock.Now(), result)\n", "	s.machine.Probed(began, s.clock.Now(), result)\n	s.parts.asOf = s.clock.Now()\n"},
	{"identity-ignored", "session.go", "whoever answers is the member",
		"	return s.found != \"\" && want != \"\" && s.found != want\n", "	return s.found != \"\" && want != \"\" && s.found == \"\"\n"},
	{"identity-not-asked", "gate.go", "a connection is used without asking who answers on it",
		"	if !open {\n", "	if !open && asked < 0 {\n"},
	{"stranger-stays-open", "gate.go", "connections to another cluster are kept",
		"	if err != nil {\n		g.close()\n	}\n	return err", "	return err"},
	{"silent-watch-is-fine", "session.go", "a watch that shows nothing is never begun anew",
		"case running && state == health.Ready && old:", "case running && state == health.Ready && old && silent:"},
	{"standby-writes", "member.go", "a standby keeps identities on the hub",
		"	case m.fleet.Leading != nil && !m.fleet.Leading():\n		return errNotKept\n", ""},
	{"forgets-dropped", "members.go", "what is dropped is forgotten with its parts",
		"none := m.reg == nil && (m.known == nil || len(m.known.keys()) == 0)", "none := m.reg == nil"},
	{"writes-offline", "carrier.go", "writes go to members that are in no state for them",
		"if now.State != v1beta1.ClusterReady && now.State != v1beta1.ClusterSuspect {", "if m.current == nil {"},
	{"configmap-wins", "registration.go", "a ConfigMap wins over a Secret",
		"		return 1\n	case \"ConfigMap\":", "		return 3\n	case \"ConfigMap\":"},
	{"redirects-followed", "gate.go", "credentials go where a server sends them",
		"err == nil && response.StatusCode >= http.StatusMultipleChoices", "err == nil && response.StatusCode > http.StatusBadRequest"},
	{"delete-any-part", "carrier.go", "a delete hits whatever has the name",
		"			Preconditions: &metav1.Preconditions{UID: &uid}, Prop", "			Prop"},
	{"kept-archive-deleted", "charts.go", "an archive is deleted that was kept for another part meanwhile",
		", ResourceVersion: &chart.ResourceVersion}", "}"},
	{"apply-unconditional", "carrier.go", "an apply that is to create changes what exists",
		"	metadata[\"resourceVersion\"] = noVersion\n", ""},
	{"lease-ignored", "lease.go", "another hub's Lease is taken from it",
		"&& holder != l.holder && !l.abandoned(holder, found.ResourceVersion)", "&& l.abandoned(holder, found.ResourceVersion) && holder == l.holder"},
	{"lease-too-old", "lease.go", "a write begins when the Lease may end before the request does",
		"leaseLeft = leaseFor - requestTimeout", "leaseLeft = leaseFor"},
	{"standby-renews", "session.go", "a standby keeps the Leases of members",
		"	if s.lease == nil || !s.leading() {", "	if s.lease == nil {"},
	{"credentials-are-meta", "registration.go", "a kubeconfig beside the one that is used is metadata of the cluster",
		"	case v1beta1.KeyKubeconfig, v1beta1.KeyKubeconfigRuntime, v1beta1.KeyStatus:", "	case v1beta1.KeyKubeconfig, v1beta1.KeyStatus:"},
}

// hysteresis are the mutants of fleet/health.
var hysteresis = []mutant{
	{"failures-border", "health.go", "one failure more is needed to be Offline",
		"m.failures >= OfflineFailures && now", "m.failures > OfflineFailures && now"},
	{"offline-border", "health.go", "a moment more is needed to be Offline",
		"now.Sub(m.failing) >= OfflineAfter", "now.Sub(m.failing) > OfflineAfter"},
	{"successes-border", "health.go", "one success more is needed to be Ready",
		"m.successes >= ReadySuccesses && now", "m.successes > ReadySuccesses && now"},
	{"ready-border", "health.go", "a moment more is needed to be Ready",
		"now.Sub(m.succeeding) >= readyAfter(flaps)", "now.Sub(m.succeeding) > readyAfter(flaps)"},
	{"ready-unlisted", "health.go", "who is back is Ready with the caches of before",
		"			m.change(now, Offline)\n			m.listed = time.Time{}\n", "			m.change(now, Offline)\n"},
	{"flapping-border", "health.go", "a change counts a moment too long",
		"if now.Sub(at) < FlapWithin {", "if now.Sub(at) <= FlapWithin {"},
	{"fresh-border", "health.go", "evidence of two minutes ago is too old",
		"now.Sub(asOf) <= FreshWithin", "now.Sub(asOf) < FreshWithin"},
}

// credentials are the mutants of fleet/kubeconfig.
var credentials = []mutant{
	{"exec-accepted", "kubeconfig.go", "a kubeconfig may run a program in the controller",
		"		{u.Exec != nil, \"exec\", \"would run a program in the controller\"},\n", ""},
	{"token-file-accepted", "kubeconfig.go", "a kubeconfig may read files of the controller",
		"		{u.TokenFile != \"\", \"tokenFile\", \"would read a file of the controller; give token\"},\n", ""},
	{"mapped-loopback", "kubeconfig.go", "IPv4 in the spelling of IPv6 passes",
		"	a = a.Unmap()\n", ""},
}
