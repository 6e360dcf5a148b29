package events

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	eventsv1 "landfall.build/events/v1"
)

// ActorOf returns who had a record written; nil where that is not known, or nobody did.
func ActorOf(m proto.Message) *eventsv1.Actor {
	switch m := m.(type) {
	case nil:
		return nil
	case *eventsv1.ChangeAdmitted:
		return m.GetAdmission().GetActor()
	case *eventsv1.ChangeRevised:
		return m.GetAdmission().GetActor()
	}
	field := actorField(m)
	if field == nil || !m.ProtoReflect().Has(field) {
		return nil
	}
	return m.ProtoReflect().Get(field).Message().Interface().(*eventsv1.Actor)
}

// SetActor sets who had a record written, of a message that says so itself.
func SetActor(m proto.Message, a *eventsv1.Actor) {
	if field := actorField(m); field != nil && a != nil {
		m.ProtoReflect().Set(field, protoreflect.ValueOfMessage(a.ProtoReflect()))
	}
}

func actorField(m proto.Message) protoreflect.FieldDescriptor {
	field := m.ProtoReflect().Descriptor().Fields().ByName("actor")
	if field == nil || field.Message() == nil || field.Message().FullName() != (*eventsv1.Actor)(nil).ProtoReflect().Descriptor().FullName() {
		return nil
	}
	return field
}
