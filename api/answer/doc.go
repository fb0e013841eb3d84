// Package answer writes answers over HTTP: documents with their ETags, and errors as Statuses
// that tell callers what they may know.
package answer
