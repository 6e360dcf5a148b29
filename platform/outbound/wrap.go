package outbound

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"landfall.build/platform/sandbox"
)

// Try reports why this system cannot give such a sandbox, with its network.
func Try(ctx context.Context, s sandbox.Spec) error {
	cmd := exec.CommandContext(ctx, "")
	cmd.Err = nil // it has no program
	end, err := Wrap(s, cmd)
	if err != nil {
		return err
	}
	defer end()
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %w: %s", sandbox.ErrUnavailable, err, strings.TrimSpace(said.String()))
	}
	return nil
}
