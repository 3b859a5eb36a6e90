package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
)

// compressedKernel returns the compressed ELF kernel inside a bzImage and the
// program that decompresses it. The places of the header fields are those of
// the kernel's Documentation/arch/x86/boot.rst (protocol 2.08 and newer).
func compressedKernel(bzImage []byte) (payload []byte, program string, err error) {
	const headerEnd = 0x250
	if len(bzImage) < headerEnd || string(bzImage[0x202:0x206]) != "HdrS" {
		return nil, "", fmt.Errorf("not a bzImage: no HdrS mark")
	}
	if v := binary.LittleEndian.Uint16(bzImage[0x206:]); v < 0x208 {
		return nil, "", fmt.Errorf("boot protocol %#x has no payload field", v)
	}
	setupSectors := uint64(bzImage[0x1f1])
	if setupSectors == 0 {
		setupSectors = 4
	}
	start := (setupSectors+1)*512 + uint64(binary.LittleEndian.Uint32(bzImage[0x248:]))
	size := uint64(binary.LittleEndian.Uint32(bzImage[0x24c:]))
	// The build appends the uncompressed size in four bytes.
	if size < 8 || start+size > uint64(len(bzImage)) {
		return nil, "", fmt.Errorf("payload of %d bytes at %d is outside the image of %d bytes", size, start, len(bzImage))
	}
	payload = bzImage[start : start+size-4]
	for magic, name := range map[string]string{"\xfd7zXZ\x00": "xz", "\x28\xb5\x2f\xfd": "zstd", "\x1f\x8b\x08": "gzip"} {
		if bytes.HasPrefix(payload, []byte(magic)) {
			return payload, name, nil
		}
	}
	return nil, "", fmt.Errorf("payload is neither xz, zstd nor gzip: % x", payload[:4])
}

// extractVmlinux writes the ELF kernel inside a bzImage to target. Booted
// through PVH it skips the guest's own decompressor, which takes seconds under
// emulation.
func extractVmlinux(ctx context.Context, bzImagePath, target string) error {
	image, err := os.ReadFile(bzImagePath)
	if err != nil {
		return err
	}
	payload, program, err := compressedKernel(image)
	if err != nil {
		return fmt.Errorf("%s: %w", bzImagePath, err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "-dcq")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(payload), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s of the kernel in %s: %w: %s", program, bzImagePath, err, stderr.String())
	}
	if !bytes.HasPrefix(stdout.Bytes(), []byte("\x7fELF")) {
		return fmt.Errorf("%s: the decompressed kernel is no ELF file", bzImagePath)
	}
	return os.WriteFile(target, stdout.Bytes(), 0o644)
}
