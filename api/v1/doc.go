// Package v1 has the types that the HTTP API answers with, in JSON. The document
// api/openapi.json is made of them.
package v1
