package logs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Many loggers write one JSON object for each message: Docker's json-file,
// structlog, python-json-logger, loguru with serialize, journalctl -o json, cloud
// loggers, and the error file of torchelastic. What the program said stands in
// some of their members, with its line breaks escaped.

const (
	maxRecord      = longLine // bytes of a record
	maxRecordLines = 2000
	recordDepth    = 4
)

// Members of a record by what they hold, in lower case.
var (
	recordText  = []string{"message", "msg", "log", "event", "@message", "textpayload", "line"}
	recordFault = []string{"exc_info", "exc_text", "exception", "traceback", "stack_trace", "stacktrace", "stack", "py_callstack", "error", "err"}
	recordInner = []string{"record", "jsonpayload", "extrainfo"}
	recordTime  = []string{"time", "timestamp", "ts", "asctime", "@timestamp", "date", "created", "__realtime_timestamp"}
	recordRank  = []string{"rank", "global_rank"}
	// Without one of these an object with a message may be data of the training.
	recordHint = []string{"level", "levelname", "severity", "lvl", "loglevel", "log_level", "priority", "stream", "logger", "logger_name"}
)

// record takes a line without blanks around it apart that is one log record in
// JSON, and reports whether it was one.
func (r *reader) record(no int, l []byte) bool {
	if len(l) < 2 || l[0] != '{' || l[len(l)-1] != '}' || len(l) > maxRecord || r.inReport != noReport || ownDocument(l) {
		return false
	}
	o := members(l)
	if o == nil {
		return false
	}
	head := stampText(first(o, recordTime))
	if head == "" && first(o, recordHint) == nil && first(o, recordFault) == nil && first(o, recordInner) == nil && faultOf(o["message"]) == nil {
		return false
	}
	var lines []string
	recordLines(o, recordDepth, &lines)
	if len(lines) == 0 {
		return false
	}
	if head != "" {
		head += " "
	}
	if n, ok := rankNumber(first(o, recordRank)); ok {
		head += fmt.Sprintf("[rank%d]: ", n)
	}
	for _, s := range lines {
		r.take(no, []byte(head+s))
	}
	return true
}

// faultMember takes the line of an indented record apart that holds a whole
// traceback as one string: "py_callstack": "Traceback (most recent call last):\n …",
func (r *reader) faultMember(no int, l []byte) bool {
	l = bytes.TrimSuffix(l, []byte(","))
	if len(l) > maxRecord || r.inReport != noReport || !bytes.Contains(l, []byte(`Traceback (most recent call last):\n`)) {
		return false
	}
	o := members(append(append([]byte{'{'}, l...), '}'))
	s, ok := first(o, recordFault).(string)
	if !ok {
		return false
	}
	for _, s := range textLines(s, nil) {
		r.take(no, []byte(s))
	}
	return true
}

// escapedTrace takes a line apart in which a traceback stands with its line breaks
// escaped, as the repr of a string has it.
func (r *reader) escapedTrace(no int, raw []byte) bool {
	const head = `Traceback (most recent call last):\n`
	i := bytes.Index(raw, []byte(head))
	if i < 0 || len(raw) > maxRecord || r.inReport != noReport || r.quotedBlock {
		return false
	}
	text := breaks.Replace(string(raw[i:]))
	if before := bytes.TrimRight(raw[:i], " '\""); len(before) > 0 {
		r.take(no, before)
	}
	lines := textLines(text, nil)
	for k, s := range lines {
		if k == len(lines)-1 {
			s = strings.TrimRight(s, `'")`)
			if strings.Count(s, "'")%2 == 1 { // the last one belongs to it
				s += "'"
			}
		}
		r.take(no, []byte(s))
	}
	return true
}

var breaks = strings.NewReplacer(`\n`, "\n", `\'`, "'", `\"`, `"`, `\\`, `\`)

// ownDocument reports whether a line is a report or the facts of this program, or
// of another that judges and quotes.
func ownDocument(l []byte) bool {
	return bytes.Contains(l, []byte("ncclinic.report/v")) || bytes.Contains(l, []byte("ncclinic.facts/v")) || bytes.Contains(l, []byte(`"findings":`))
}

// members reads an object; nil when it is none. Names are in lower case.
func members(l []byte) map[string]any {
	var raw map[string]any
	if json.Unmarshal(l, &raw) != nil {
		return nil
	}
	return lower(raw)
}

func lower(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[strings.ToLower(k)] = v
	}
	return out
}

// first returns the first of the members that is there.
func first(o map[string]any, names []string) any {
	for _, n := range names {
		if v := o[n]; v != nil && v != "" {
			return v
		}
	}
	return nil
}

// faultOf returns what an object says of a failure: torchelastic puts the whole
// record into the member "message".
func faultOf(v any) any {
	o, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	o = lower(o)
	if f := first(o, recordFault); f != nil {
		return f
	}
	if in, ok := o["extrainfo"].(map[string]any); ok {
		return first(lower(in), recordFault)
	}
	return nil
}

// recordLines collects what an object says: its text, then its failure.
func recordLines(o map[string]any, depth int, out *[]string) {
	if depth == 0 {
		return
	}
	typ, _ := o["exc_type"].(string)
	val, ok := o["exc_value"].(string)
	if typ != "" && ok { // structlog's dict_tracebacks
		*out = textLines(typ+": "+val, *out)
		return
	}
	for _, names := range [][]string{recordText, recordInner, recordFault} {
		for _, n := range names {
			recordValue(o[n], depth, out)
		}
	}
	// loguru prints the whole of its record as text too.
	if s, ok := o["text"].(string); ok && o["record"] != nil {
		*out = textLines(s, nil)
	}
}

func recordValue(v any, depth int, out *[]string) {
	switch v := v.(type) {
	case string:
		*out = textLines(v, *out)
	case map[string]any:
		recordLines(lower(v), depth-1, out)
	case []any:
		for _, x := range v {
			if o, ok := x.(map[string]any); ok {
				recordLines(lower(o), depth-1, out)
			}
		}
	}
}

// textLines adds the lines of a text.
func textLines(s string, out []string) []string {
	for l := range strings.Lines(s) {
		if len(out) >= maxRecordLines {
			break
		}
		out = append(out, strings.TrimRight(l, "\r\n"))
	}
	return out
}

// stampText is a record's time as the stamps of other lines are written; a number
// counts seconds, or their thousandths, millionths or billionths, since 1970.
func stampText(v any) string {
	switch v := v.(type) {
	case string:
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			return stampText(n)
		}
		if len(v) <= 40 && !strings.ContainsAny(v, "\r\n") {
			return v
		}
	case float64:
		for v > 1e11 {
			v /= 1000
		}
		if v > 1e8 {
			return time.UnixMilli(int64(v * 1000)).UTC().Format("2006-01-02T15:04:05.000Z")
		}
	}
	return ""
}

func rankNumber(v any) (int, bool) {
	switch v := v.(type) {
	case float64:
		return int(v), v >= 0 && v < 1<<20 && v == float64(int(v))
	case string:
		n, err := strconv.Atoi(v)
		return n, err == nil && n >= 0 && n < 1<<20
	}
	return 0, false
}
