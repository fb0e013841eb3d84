package cluster

import (
	"context"
	"errors"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tkestack.io/tapp/devcluster/addon"
	"tkestack.io/tapp/devcluster/images"
	"tkestack.io/tapp/devcluster/node"
	"tkestack.io/tapp/devcluster/registry"
)

// Push makes the cluster's registry serve an image archive under the given names.
func (c *Cluster) Push(ctx context.Context, archive string, names []string) error {
	p, err := c.load()
	if err != nil {
		return err
	}
	if p.record.Nodes == 0 {
		return errors.New("this cluster has simulated nodes only, which pull no images, and no registry")
	}
	digest, err := images.PushArchive(ctx, node.Registry(p.record.Slot), archive, names, remote.WithTransport(registry.Transport(addon.RegistrySocket(c.Dir))))
	if err != nil {
		return err
	}
	for _, name := range names {
		c.Out.Line("pushed %s: %s", name, digest)
	}
	return nil
}
