package logs

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

const oneTrace = "Traceback (most recent call last):\n  File \"/w/train.py\", line 7, in <module>\n    import torch\nModuleNotFoundError: No module named 'torch'"

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// perLine writes a record for each line of a text.
func perLine(text, format string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString(strings.Replace(format, "@", quote(l), 1) + "\n")
	}
	return b.String()
}

// TestRecords: what a program said is found in the records of its logger, with
// rank and time; an object that is data is no record.
func TestRecords(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		rank int
		time bool
		none bool
	}{
		"docker":      {perLine(oneTrace, `{"log":@,"stream":"stderr","time":"2024-05-03T12:00:00.5Z"}`), -1, true, false},
		"json logger": {`{"asctime": "2024-05-03 12:00:00,500", "levelname": "ERROR", "message": "failed", "rank": 3, "exc_info": ` + quote(oneTrace) + "}\n", 3, true, false},
		"structlog":   {`{"event": "failed", "level": "error", "timestamp": "2024-05-03T12:00:00Z", "exception": [{"exc_type": "ModuleNotFoundError", "exc_value": "No module named 'torch'", "frames": [{"filename": "/w/train.py", "lineno": 7}]}]}` + "\n", -1, true, false},
		"loguru":      {`{"text": ` + quote("2024-05-03 12:00:00.123 | ERROR    | __main__:main:41 - failed\n"+oneTrace+"\n") + `, "record": {"elapsed": {"seconds": 1}, "level": {"name": "ERROR"}, "message": "failed", "exception": {"type": "ModuleNotFoundError", "value": "x", "traceback": true}}}` + "\n", -1, true, false},
		"ecs":         {`{"@timestamp":"2024-05-03T12:00:00Z","log.level":"error","message":"failed","error":{"type":"ModuleNotFoundError","message":"No module named 'torch'","stack_trace":` + quote(oneTrace) + "}}\n", -1, true, false},
		"journal":     {perLine(oneTrace, `{"MESSAGE":@,"PRIORITY":"3","__REALTIME_TIMESTAMP":"1714737600500000","_HOSTNAME":"n1"}`), -1, true, false},
		"cloud":       {perLine(oneTrace, `{"jsonPayload":{"message":@},"severity":"ERROR","timestamp":"2024-05-03T12:00:00Z"}`), -1, true, false},
		"elastic":     {`{"message": {"message": "ModuleNotFoundError: No module named 'torch'", "extraInfo": {"py_callstack": ` + quote(oneTrace+"\n") + `, "timestamp": "1714737600"}}}`, -1, false, false},
		"indented":    {"{\n  \"message\": {\n    \"message\": \"ModuleNotFoundError: No module named 'torch'\",\n    \"extraInfo\": {\n      \"py_callstack\": " + quote(oneTrace+"\n") + ",\n      \"timestamp\": \"1714737600\"\n    }\n  }\n}\n", -1, false, false},
		"long":        {`{"level":"error","msg":` + quote(strings.Repeat("y", 20<<10)+"\n"+oneTrace) + "}\n", -1, false, false},
		"mail":        {"> " + strings.ReplaceAll(oneTrace, "\n", "\n> ") + "\n", -1, false, false},
		"repr":        {"RemoteError: '" + strings.NewReplacer("\n", `\n`, "'", `\'`).Replace(oneTrace) + "'\n", -1, false, false},
		"web page":    {"<pre>" + strings.NewReplacer("<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&quot;", "\n", "<br>\n").Replace(oneTrace) + "<br>\n</pre>\n", -1, false, false},
		"typeset":     {strings.NewReplacer("'", "’", `"/w`, "“/w", `py"`, "py”").Replace(oneTrace) + "\n", -1, false, false},
		"data":        {`{"message": ` + quote(oneTrace) + `, "label": 1}` + "\n", -1, false, true},
		"chat":        {`{"messages": [{"role": "user", "content": ` + quote(oneTrace) + "}]}\n", -1, false, true},
		"metrics":     {`{"loss": 0.5, "step": 10, "time": 3.2}` + "\n", -1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := Collect(context.Background(), []Input{{Path: "x.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(tt.text)), nil }}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if tt.none {
				if len(out.Exceptions) > 0 {
					t.Errorf("%+v", out.Exceptions)
				}
				return
			}
			found := false
			for _, x := range out.Exceptions {
				found = true
				if x.Type != "ModuleNotFoundError" || x.Message != "No module named 'torch'" || x.Rank != tt.rank || (x.TK != 0) != tt.time {
					t.Errorf("%+v", x)
				}
			}
			if !found {
				t.Error("no exception")
			}
		})
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(`{"log":"x\n","time":1e300}`)
	f.Add(`{"message":{"message":{"message":[{"error":{"error":"e"}}]}},"rank":-1,"ts":"-1e400"}`)
	f.Add(`"py_callstack": "Traceback (most recent call last):\n x",`)
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = Collect(context.Background(), []Input{{Path: "x", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }}}, Options{})
	})
}
