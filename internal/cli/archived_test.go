package cli

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

type archiveFile struct{ name, text string }

// logFiles are what a ticket has attached: two ranks, of which the second failed, and
// things beside them.
func logFiles() []archiveFile {
	const trace = "Traceback (most recent call last):\n  File \"/w/train.py\", line 7, in <module>\n    import torch\nModuleNotFoundError: No module named 'torch'\n"
	return []archiveFile{{"job/rank_0.log", "epoch 1 loss 2.0\n"}, {"job/rank_1.log", trace}, {"job/.hidden", trace}, {"__MACOSX/job/._rank_0.log", "\x00\x05"}, {"job/core.bin", "\x00\x01\x02\x00"}}
}

func tarOf(t *testing.T, files []archiveFile) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text))}); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, f.text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t *testing.T, files []archiveFile) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		m, err := w.Create(f.name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(m, f.text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	w.Close()
	return out.Bytes()
}

// runExplain runs explain in this process, without an environment.
func runExplain(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(append([]string{"explain"}, args...), Streams{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(string) string { return "" }})
	return code, o.String(), e.String()
}

// TestExplainArchive: logs are read in the archive that a ticket has attached, by
// whatever name, and in the folder where that lies.
func TestExplainArchive(t *testing.T) {
	plain := tarOf(t, logFiles())
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"logs.tar": plain, "logs.tar.gz": gzipOf(plain), "logs.tzst": z.EncodeAll(plain, nil), "logs.zip": zipOf(t, logFiles()), "attachment": plain} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir()) // short names are not wrapped
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
			code, out, errs := runExplain(t, name)
			if code != exitFound || !strings.Contains(out, "torch-not-installed") || !strings.Contains(out, name+"/job/rank_1.log:4: ModuleNotFoundError") || errs != "" {
				t.Errorf("exit %d\n%s%s", code, out, errs)
			}
			if strings.Contains(out, "hidden") || strings.Contains(out, "MACOSX") {
				t.Errorf("more than logs was read:\n%s", out)
			}
			if name == "attachment" { // in a folder only names tell
				return
			}
			if code, out, errs := runExplain(t, "."); code != exitFound || !strings.Contains(out, name+"/job/rank_1.log:4") {
				t.Errorf("as a folder: exit %d\n%s%s", code, out, errs)
			}
		})
	}
}

// TestExplainBadArchive: what can be read of a damaged archive is reported, what
// cannot is named, and none makes us allocate.
func TestExplainBadArchive(t *testing.T) {
	plain, zipped := tarOf(t, logFiles()), zipOf(t, logFiles())
	many := bytes.Clone(zipped)
	end := bytes.LastIndex(many, []byte("PK\x05\x06"))
	copy(many[end+10:], "\xff\xff")
	huge := bytes.Clone(zipped)
	copy(huge[end+12:], "\xff\xff\xff\x7f")
	for name, tt := range map[string]struct {
		data []byte
		code int
		want string
	}{
		"cut in the second.tar":  {plain[:512+512+512+20], exitUnsure, "rank_1.log: the archive ends in the middle"},
		"cut behind it.tar":      {plain[:4*512], exitFound, "rank_1.log:4"},
		"no member.tar":          {tarOf(t, []archiveFile{{".x", "y"}}), exitUsage, "the archive holds no file that could be a log"},
		"cut.zip":                {zipped[:100], exitUsage, "no central directory"},
		"many.zip":               {zipOf(t, slices.Repeat(logFiles()[:1], maxArchived+1)), exitUsage, "more than 20000 files"},
		"lying count.zip":        {many, exitUsage, "65535 members do not fit into a directory of"},
		"lying size.zip":         {huge, exitUsage, "the central directory lies outside of the file"},
		"cut in the stream.tgz":  {gzipOf(plain)[:60], exitUsage, "cut in the stream.tgz: "},
		"nothing but zeroes.tar": {make([]byte, 4096), exitUsage, "not a text file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile(name, tt.data, 0o644); err != nil {
				t.Fatal(err)
			}
			code, out, errs := runExplain(t, name)
			if code != tt.code || !strings.Contains(out+errs, tt.want) {
				t.Errorf("exit %d, want %d and %q\n%s%s", code, tt.code, tt.want, out, errs)
			}
			for _, s := range []string{out, errs} {
				if strings.Contains(s, "internal error") || strings.Contains(s, "unexpected EOF") {
					t.Error(s)
				}
			}
		})
	}
}

func FuzzArchived(f *testing.F) {
	f.Add([]byte("PK\x03\x04PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add(append([]byte("x\x00"), make([]byte, 600)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		ins, _, _ := archived(file)
		for _, in := range ins {
			if r, err := in.Open(); err == nil {
				var b [4096]byte
				_, _ = r.Read(b[:])
				r.Close()
			}
		}
	})
}

// TestExplainQuoteOnly: a message that somebody quotes in a sentence is no log of a
// healthy run.
func TestExplainQuoteOnly(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("mail.txt", []byte("The error message is \"RuntimeError: Distributed package doesn't have NCCL built in\".\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := runExplain(t, "mail.txt"); code != exitUnsure || !strings.HasPrefix(out, "UNKNOWN") || errs != "" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
