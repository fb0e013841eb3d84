// What the server sends, as the views want it. This module alone knows the routes and
// the JSON of the API.
import { severities } from './marks.js';

const api = 'api/v1';
const enc = encodeURIComponent;

export const paths = {
  list: (kind, ns) => ns ? `${api}/namespaces/${enc(ns)}/${kind}` : `${api}/${kind}`,
  object: (kind, ns, name) => `${api}/namespaces/${enc(ns)}/${kind}/${enc(name)}`,
  part: (kind, ns, name, part) => `${api}/namespaces/${enc(ns)}/${kind}/${enc(name)}/${part}`,
  clusters: () => `${api}/clusters`,
  parts: (cluster) => `${api}/clusters/${enc(cluster)}/advdeployments?limit=5000`,
  preview: (kind, ns) => `${api}/namespaces/${enc(ns)}/${kind}:preview`,
  unit: (ns, name, cluster) => `${api}/namespaces/${enc(ns)}/appsets/${enc(name)}/instances?cluster=${enc(cluster)}&limit=5000`,
};

export const link = (kind, ns, name) => `#/${kind}/${enc(ns)}/${enc(name)}`;
export const clusterLink = (name) => `#/clusters/${enc(name)}`;

// summary of an object, of a list or by itself.
export function summary(kind, o) {
  const ns = o.namespace ?? '', name = o.name ?? '';
  const desired = o.desired ?? o.replicas ?? 0, available = o.available ?? o.ready ?? 0;
  const { max, used, silent } = budgetOf(o, desired, available);
  return {
    kind, ns, name, key: `${ns}/${name}`, created: o.created, state: o.state ?? '', reason: o.reason ?? '', message: o.message ?? '', since: o.since,
    paused: !!o.paused, desired, available, updated: o.updated, states: o.states ?? {},
    versions: versionsOf(kind, o), budget: max === undefined || max === null ? null : { max, used, silent },
    stages: o.stages ?? o.rollout?.stages ?? [], clusters: o.clusterStatuses ?? [], problems: o.problems ?? [], waiting: o.waiting ?? [], steps: o.steps ?? [],
    commands: (o.commands ?? []).map((c) => [c.title, c.line]), conditions: o.conditions ?? o.object?.status?.conditions ?? [],
    attention: (o.attention ?? []).map((a) => ({ ...a, severity: severityOf(a, o), kind, ns, name })),
  };
}

// budgetOf an object: a fleet's is that of its rollout, where it has one for all clusters. What
// silent clusters have counts, so that more may be in use than there is.
function budgetOf(o, desired, available) {
  if (o.rollout) return { max: o.rollout.budget, used: o.rollout.charged ?? 0, silent: Math.min(o.unknown ?? 0, o.rollout.charged ?? 0) };
  return { max: o.maxUnavailable, used: o.unavailable ?? Math.max(0, desired - available) };
}

// budgetWords say how much of it is in use, and of that how much is so for silence alone.
export function budgetWords({ max, used, silent }) {
  return `${used ?? 0} of ${max}${silent ? `, up to ${silent} by silent clusters` : ''}`;
}

// severityOf says how urgent it is, by the reason of the controllers.
function severityOf(a, o) {
  const reason = a.reason ?? '';
  if (Object.hasOwn(severities, a.severity)) return a.severity;
  if (/Confirm/.test(reason)) return 'waiting';
  if (/Halted|RolledBack/.test(reason)) return 'halted';
  if (/Cluster|Silent|Unreachable|Offline/.test(reason)) return 'silent';
  if (/Node.*Lost|NodeLost|NodeGone|NodeUnreachable/.test(reason)) return 'lost';
  if (/Paused/.test(reason)) return 'paused';
  return o.state === 'Stalled' || /Deadline|Stalled|Invalid/.test(reason) ? 'stalled' : 'degraded';
}

// versionsOf an object: key, name and number of instances of each.
function versionsOf(kind, o) {
  if (o.versions) return o.versions.map((v) => ({ key: v.hash ?? v.name, name: v.name ?? imagesName(v.images), instances: v.instances }));
  if (o.templates) return o.templates.map((t) => ({ key: t.name, name: o.templates.length > 1 || !t.images?.length ? t.name : imagesName(t.images), instances: t.instances }));
  if (o.version) return String(o.version).split('/').map((v) => ({ key: v, name: v }));
  if (o.image) return [{ key: o.image, name: o.image }];
  return [];
}

// imagesName names a version by its images, each <container>=<image>: by their tags,
// which is where versions differ.
export function imagesName(images) {
  return (images ?? []).map((i) => tag(i.replace(/^[^=/:]+=/, ''))).join(', ');
}

function tag(image) {
  const [, base, version] = /([^/:@]+)(?:[:@](.+))?$/.exec(image) ?? [];
  return version ? version.replace(/^sha256:(.{10}).*/, '$1') : base ?? image;
}

// Commands: what one would do next, as typed into a shell.
const plain = /^[A-Za-z0-9._:/=,@%+-]+$/;
export const word = (text) => plain.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`;

export function tapp(verb, ns, name, ...more) {
  return ['kubectl tapp', verb, '-n', word(ns), word(name), ...more.filter(Boolean).map(word)].join(' ');
}

// nextOf is the command that answers what needs attention.
export function nextOf(a) {
  if (a.command) return a.command;
  if (a.kind === 'clusters') return 'kubectl tapp fleet clusters';
  if (a.kind === 'apps') return `kubectl describe app -n ${word(a.ns)} ${word(a.name)}`;
  const fleet = a.kind === 'appsets';
  switch (a.severity) {
    case 'waiting': return tapp('fleet confirm', a.ns, a.name);
    case 'halted': return fleet ? tapp('fleet explain', a.ns, a.name) : tapp('undo', a.ns, a.name);
    case 'paused': return tapp(fleet ? 'fleet resume' : 'resume', a.ns, a.name);
  }
  return fleet ? tapp('fleet explain', a.ns, a.name) : tapp('get', a.ns, a.name);
}
