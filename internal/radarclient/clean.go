package radarclient

import (
	"reflect"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// maxText is the most bytes of a text of a view.
const maxText = 4096

// foreign is an error whose words may be those of who answers, such as a header or a key
// of an object that is none, made fit for a terminal.
type foreign struct{ error }

func (e foreign) Error() string { return text.Clean(e.error.Error(), maxText) }

func (e foreign) Unwrap() error { return e.error }

// clean makes all texts of a value fit for a terminal. The collector has cleaned what
// processes chose; but who answers on a socket need not be one.
func clean(value any) { cleanValue(reflect.ValueOf(value)) }

func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text.Clean(v.String(), maxText))
	case reflect.Pointer:
		if !v.IsNil() {
			cleanValue(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			cleanValue(v.Field(i))
		}
	case reflect.Slice:
		if hasTexts(v.Type().Elem()) {
			for i := range v.Len() {
				cleanValue(v.Index(i))
			}
		}
	case reflect.Map:
		cleanMap(v)
	}
}

// hasTexts is false for the columns of numbers, of which there are many.
func hasTexts(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Map:
		return true
	default:
		return false
	}
}

// cleanMap puts clean keys and values in the place of what is there: those of a map
// cannot be set.
func cleanMap(v reflect.Value) {
	for _, key := range v.MapKeys() {
		newKey, value := reflect.New(key.Type()).Elem(), reflect.New(v.Type().Elem()).Elem()
		newKey.Set(key)
		value.Set(v.MapIndex(key))
		cleanValue(newKey)
		cleanValue(value)
		v.SetMapIndex(key, reflect.Value{})
		v.SetMapIndex(newKey, value)
	}
}
