package provider

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Small functions as gcc (x86-64) and clang (arm64) compile them: a loop with a
// branch for each kind of completion and an error code, one that skips
// entries, and a post.
const (
	loopX86 = "85f60f8eeb0000008b4704448b0f4531c04129c14539c87457488b4f10448d500123470844895704488b0cc14889c848890a83e0074883f8037455f6c10475384883f8010f84960000004883f8020f857c000000c7420c070000004183c0014883c2304439c674484489d04539c875a94489c8c30f1f40004883f80474424883f805753141b9feffffff4489c8c366904183c001c74210080000004883c230894af44439c675c1660f1f8400000000004189f1ebbb894a08eba1660f1f440000c7420c09000000eb920f1f8000000000c7420801000000eb820f1f800000000048c1e920c7420804000000894a14e968ffffff4531c9e975ffffff"
	skipX86 = "31c939f17d338b47043907742c4c8b4710448d480123470844894f04498b04c0a80175de48890283c10148c1e8204883c2308942ec39f17ccd89c8c3"
	postX86 = "4885f6744b8b07448b4f0889c12b4f04eb2a660f1f4400004c8b1e4c8b5710448d40014421c844890783c1014d891cc2488b76084885f674174489c04139c973d7488932b80c000000c3660f1f44000031c0c3"
	loopA64 = "3f0400718b060054e80300aae0031f2a495000912a0080528b008052ec0080520d0180522e018052060000142a411fb80004001129c100913f00006b000500540f414029ff01106b800400540f0940b9110940f9ef01100a2f5a6ff811060011110500b9f00940922fc11ef81f0a00f10c010054d0fdffb41f0600f1600100541f0a00f1410200542c811fb8e9ffff171f0e00f1200100541f1200f1410100542e811fb8e3ffff17effd60d32b411fb82f0100b9dfffff172dc11fb82f1100b9dcffff171f1600f1e00000542f411fb8d8ffff17e0031f2ac0035fd6e003012ac0035fd620008012c0035fd6"
	skipA64 = "3f040071eb020054e80300aae0031f2a09068052030000141f00016b4a0200540b2940297f010a6be00100540b0940b90c0940f96b010a0a4a0500118b596bf80a0500b9abfe07370a08299b6cfd60d3000400114b0100f94c1d00b9efffff17e0031f2ac0035fd6"
	postA64 = "e10100b40a244029080840b94901094b3f01086b880100540b0840f92c0040f90d010a0a4a050011290500116c592df8210440f90a0000b9c1feffb5e0031f2ac0035fd680018052410000f9c0035fd6"
)

func fromHex(t testing.TB, text string) []byte {
	t.Helper()
	code, err := hex.DecodeString(text)
	require.NoError(t, err)
	return code
}

// codeMapOf prepares the analysis of a file with one function of the code at
// testCode.
func codeMapOf(t testing.TB, machine elf.Machine, code []byte) *codeMap {
	t.Helper()
	e := &testELF{symbols: []testSymbol{{setOpsName, 0, 0}}, data: make([]byte, 64)}
	e.add(code...)
	file := e.build()
	binary.LittleEndian.PutUint16(file[18:], uint16(machine))
	img, err := openImage(bytes.NewReader(file))
	require.NoError(t, err)
	_, a, err := img.classify()
	require.NoError(t, err)
	require.NotNil(t, a)
	require.NoError(t, a.prepare())
	return newCodeMap(a)
}

func TestSitesByHand(t *testing.T) {
	x86, arm := elf.EM_X86_64, elf.EM_AARCH64
	tests := map[string]struct {
		machine  elf.Machine
		function Function
		code     string
		kind     SiteKind
		want     []string
	}{
		"loop": {x86, PollCQ, loopX86, SitesFull, []string{"0x1066 emulated wc=rdx-48 cq=rdi", "0x10a5 emulated wc=rdx-48 cq=rdi"}},
		"skip": {x86, PollCQ, skipX86, SitesFull, []string{"0x1037 emulated wc=rdx-48 cq=rdi"}},
		"post": {x86, PostSend, postX86, SitesFull, []string{"0x1041 stepped wr=rsi qp=rdi"}},
		"arm loop": {
			arm, PollCQ, loopA64, SitesFull,
			[]string{"0x103c emulated wc=x9-68 cq=x8"},
		},
		"arm skip": {arm, PollCQ, skipA64, SitesFull, []string{"0x105c emulated wc=x10 cq=x8"}},
		"arm post": {arm, PostSend, postA64, SitesFull, []string{"0x1048 stepped wr=x1 qp=?"}},
		// mov eax, 5; ret
		"constant": {x86, PollCQ, "b805000000c3", SitesNone, nil},
		// xor eax, eax; ret
		"nothing": {x86, PollCQ, "31c0c3", SitesNone, nil},
		// jmp into the middle of the next instruction
		"no boundary": {x86, PollCQ, "eb01b805000000c3", SitesNone, nil},
		// An endless loop that counts: it never returns.
		"no return": {x86, PollCQ, "31c0ffc0ebfc", SitesNone, nil},
		// xor eax, eax; 1: cmp [rdi], eax; setne cl; movzx ecx, cl; add eax, ecx; dec esi; jne 1b; ret
		"no branch": {x86, PollCQ, "31c039070f95c10fb6c901c8ffce75f2c3", SitesNone, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := codeMapOf(t, test.machine, fromHex(t, test.code))
			set := sitesOf(c, test.function, testCode)
			assert.Equal(t, test.kind, set.Kind, set.Reason)
			var found []string
			for _, s := range set.Sites {
				found = append(found, siteText(test.machine, &s))
			}
			require.Len(t, found, len(test.want), "%q", found)
			for i := range found {
				assert.Contains(t, found[i], test.want[i])
			}
		})
	}
}

func sitesOf(c *codeMap, function Function, address uint64) SiteSet {
	if function == PollCQ {
		return c.completionSites(address)
	}
	return c.failureSites(function, address)
}

func TestRegisterOffset(t *testing.T) {
	for r, want := range map[uint8]int{0: 80, 3: 40, 4: 152, 5: 32, 7: 112, 15: 0} {
		got, err := RegisterOffset(elf.EM_X86_64, r)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	got, err := RegisterOffset(elf.EM_AARCH64, 31)
	require.NoError(t, err)
	assert.Equal(t, 248, got)
	_, err = RegisterOffset(elf.EM_X86_64, 16)
	require.ErrorIs(t, err, ErrMachine)
}

// FuzzSites: any code gives sites that are the starts of instructions, in a number
// of steps in proportion to it.
func FuzzSites(f *testing.F) {
	for _, code := range []string{loopX86, skipX86, postX86} {
		f.Add(fromHex(f, code), false)
	}
	for _, code := range []string{loopA64, skipA64, postA64} {
		f.Add(fromHex(f, code), true)
	}
	f.Fuzz(func(t *testing.T, code []byte, arm bool) {
		if len(code) == 0 || len(code) > testDataAt-testCode {
			return
		}
		machine := elf.EM_X86_64
		if arm {
			machine = elf.EM_AARCH64
		}
		for _, function := range []Function{PollCQ, PostSend} {
			c := codeMapOf(t, machine, code)
			checkSites(t, c, code, sitesOf(c, function, testCode))
			if spent, limit := maxSiteEffort-c.budget, 2000*len(code)+20_000; spent > limit {
				t.Fatalf("%s: %d steps for %d bytes of code, of which %d are allowed", function, spent, len(code), limit)
			}
		}
	})
}

// checkSites checks what must hold of any result, with a sweep of its own.
func checkSites(t *testing.T, c *codeMap, code []byte, set SiteSet) {
	t.Helper()
	starts := map[uint64]bool{}
	for at := 0; at < len(code); {
		in, err := c.a.cpu.decode(code[at:], uint64(testCode+at))
		if err != nil {
			break
		}
		starts[uint64(testCode+at)] = true
		at += in.size
	}
	if (set.Kind == SitesNone) != (len(set.Sites) == 0) || (set.Kind == SitesFull) != (set.Reason == "") {
		t.Fatalf("%v with %d sites: %q", set.Kind, len(set.Sites), set.Reason)
	}
	for _, s := range set.Sites {
		if !starts[s.Offset] || s.Instead != nil && !starts[s.Instead.Offset] {
			t.Fatalf("%#x is not the start of an instruction", s.Offset)
		}
		if len(s.Overrides) > maxOverrides {
			t.Fatalf("%d overrides", len(s.Overrides))
		}
		for _, o := range s.Overrides {
			if int(o.Offset)+int(o.Size) > sizeofWC || o.Size == 0 || o.Size > 8 {
				t.Fatalf("override %+v", o)
			}
		}
		for _, l := range []Location{s.WC, s.CQ, s.WR, s.QP} {
			if l.Base.Register >= 32 || l.Counter.Register >= 32 {
				t.Fatalf("location %+v", l)
			}
		}
	}
}
