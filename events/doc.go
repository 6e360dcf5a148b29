// Package events is everything that a program needs in order to speak with Landfall through Kafka:
// the topics, the records' envelope (CloudEvents in binary mode over Protobuf), derived ids, and the
// generated types of every fact (package eventsv1, from schemas/events/v1).
//
// It has no dependency but Protobuf, so that a code-review system can import it.
package events
