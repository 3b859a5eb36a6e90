package lab

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// bzImage lays out a kernel image as the build does, with the payload and its
// uncompressed size behind one setup sector.
func bzImage(payload []byte) []byte {
	image := make([]byte, 2*512)
	image[0x1f1] = 1
	copy(image[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(image[0x206:], 0x20f)
	binary.LittleEndian.PutUint32(image[0x248:], 16)
	binary.LittleEndian.PutUint32(image[0x24c:], uint32(len(payload)+4))
	image = append(image, make([]byte, 16)...)
	image = append(image, payload...)
	return append(image, 1, 2, 3, 4, 'r', 'e', 's', 't')
}

func TestExtractVmlinux(t *testing.T) {
	kernel := append([]byte("\x7fELF"), bytes.Repeat([]byte("text"), 1000)...)
	for _, program := range []string{"xz", "zstd", "gzip"} {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("%s is not installed", program)
			}
			cmd := exec.Command(program, "-cq")
			cmd.Stdin = bytes.NewReader(kernel)
			payload, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			image, target := filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "vmlinux")
			if err := os.WriteFile(image, bzImage(payload), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := extractVmlinux(t.Context(), image, target); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(target); err != nil || !bytes.Equal(got, kernel) {
				t.Errorf("got %d bytes, %v; want the %d of the kernel", len(got), err, len(kernel))
			}
		})
	}
}

func TestCompressedKernelRefuses(t *testing.T) {
	whole := bzImage([]byte("\x1f\x8b\x08 and so on"))
	if _, program, err := compressedKernel(whole); err != nil || program != "gzip" {
		t.Fatalf("the unspoilt image: %s, %v", program, err)
	}
	spoil := map[string]func([]byte) []byte{
		"short":           func(b []byte) []byte { return b[:0x24f] },
		"no mark":         func(b []byte) []byte { b[0x202] = 0; return b },
		"old protocol":    func(b []byte) []byte { b[0x206] = 7; b[0x207] = 2; return b },
		"payload outside": func(b []byte) []byte { b[0x24e] = 0xff; return b },
		"empty payload":   func(b []byte) []byte { copy(b[0x24c:], []byte{0, 0, 0, 0}); return b },
		"unknown packing": func(b []byte) []byte { b[2*512+16] = 'x'; return b },
	}
	for name, f := range spoil {
		if _, _, err := compressedKernel(f(bytes.Clone(whole))); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzCompressedKernel(f *testing.F) {
	f.Add(bzImage([]byte("\xfd7zXZ\x00....")))
	f.Fuzz(func(t *testing.T, image []byte) {
		payload, program, err := compressedKernel(image)
		if err == nil && (len(payload) == 0 || program == "") {
			t.Fatal("neither a payload nor an error")
		}
	})
}
