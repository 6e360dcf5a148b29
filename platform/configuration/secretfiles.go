package configuration

import (
	"maps"
	"reflect"
	"slices"
)

// SecretFiles returns the paths of the files with secrets and private keys that the configuration names, sorted. Those of the broker may
// have ServicePlaceholder in them.
func (c *Configuration) SecretFiles() []string {
	files := map[string]bool{c.Broker.SecretFile: true, c.Broker.TLS.Key: true, c.Gateway.TLS.Key: true}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch value := v.Interface().(type) {
		case SecretPlace:
			files[value.File] = true
			return
		case Secret:
			files[value.File] = true
			return
		}
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Struct:
			for field, value := range v.Fields() {
				if field.IsExported() {
					walk(value)
				}
			}
		case reflect.Slice:
			for _, element := range v.Seq2() {
				walk(element)
			}
		case reflect.Map:
			for _, element := range v.Seq2() {
				walk(element)
			}
		}
	}
	walk(reflect.ValueOf(c))
	delete(files, "")
	return slices.Sorted(maps.Keys(files))
}
