package plan

import (
	"bytes"
	"encoding/json"
)

// JSON writes a plan with the text of each reason in a language.
func (p *Plan) JSON(lang string) ([]byte, error) {
	raw, err := encode(p)
	if err != nil {
		return nil, err
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	addText(v, lang)
	return encode(v)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// addText finds the reasons: objects with an id and args.
func addText(v any, lang string) {
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			addText(e, lang)
		}
	case map[string]any:
		id, ok := x["id"].(string)
		args, ok2 := x["args"].(map[string]any)
		if ok && ok2 {
			r := Reason{ID: id, Args: map[string]string{}}
			for k, a := range args {
				r.Args[k], _ = a.(string)
			}
			x["text"] = r.Text(lang)
			return
		}
		for _, e := range x {
			addText(e, lang)
		}
	}
}
