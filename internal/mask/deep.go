package mask

import "reflect"

// Deep masks every string that v leads to: through pointers, structs, slices,
// arrays, maps and interfaces of strings. A struct with the string fields Name
// and Value is a setting, whose value is masked as Value does. Collectors mask
// what they know to be risky; this holds for what they do not: a version
// string, a link's target or the output of a foreign program can hold a secret
// too. v is a pointer to a tree.
func Deep(v any) { deep(reflect.ValueOf(v)) }

func deep(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			deep(v.Elem())
		}
	case reflect.String:
		if v.CanSet() {
			if s := v.String(); s != "" {
				if m := Text(s); len(m) != len(s) || m != s {
					v.SetString(m)
				}
			}
		}
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k >= reflect.Bool && k <= reflect.Complex128 {
			return // numbers
		}
		for i := range v.Len() {
			deep(v.Index(i))
		}
	case reflect.Map:
		if v.Type().Elem().Kind() != reflect.String {
			return
		}
		for it := v.MapRange(); it.Next(); {
			s := it.Value().String()
			m := Text(s)
			if k := it.Key(); k.Kind() == reflect.String {
				m = Value(k.String(), s)
			}
			if m != s {
				v.SetMapIndex(it.Key(), reflect.ValueOf(m).Convert(v.Type().Elem()))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				deep(f)
			}
		}
		name, value := v.FieldByName("Name"), v.FieldByName("Value")
		if name.IsValid() && value.IsValid() && name.Kind() == reflect.String && value.Kind() == reflect.String && value.CanSet() {
			value.SetString(Value(name.String(), value.String()))
		}
	}
}
