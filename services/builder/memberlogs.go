package builder

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"

	"landfall.build/engine/steps"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/builder/execution"
)

// mostShared bounds what is kept of a tool's output that is of no target in particular.
const mostShared = 256 << 10

// memberLogs are the logs of the steps of a group: of each what the tool says of its target and, if it did not pass, what the tool
// says of none.
type memberLogs struct {
	worker *worker
	job    *job
	steps  map[string]steps.Step
	limit  int64

	mu     sync.Mutex
	files  map[string]*memberLog
	shared []byte
}

type memberLog struct {
	file *os.File
	name string
	size int64
	// from is where the output begins that is of the target.
	from int64
	err  error
}

func (g *groupRun) newMemberLogs(members map[string]steps.Step) *memberLogs {
	limit := g.place.request.OutputLimit
	if limit <= 0 {
		limit = 16 << 20
	}
	return &memberLogs{worker: g.worker, job: g.job, steps: members, limit: limit, files: map[string]*memberLog{}}
}

// write is a groups.Output. Output of a target that has a result is left out.
func (l *memberLogs) write(label string, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, asked := l.steps[label]; !asked {
		if room := mostShared - len(l.shared); room > 0 {
			l.shared = append(l.shared, text[:min(room, len(text))]...)
		}
		return
	}
	l.append(label, text)
}

func (l *memberLogs) append(label string, text []byte) {
	log := l.files[label]
	if log == nil {
		one := l.steps[label]
		log = &memberLog{}
		log.file, log.name, log.err = l.worker.createLog(&job{queue: l.job.queue, step: one, lease: l.job.lease, filled: l.job.filled})
		if log.err == nil {
			log.from, _ = log.file.Seek(0, io.SeekCurrent)
		}
		l.files[label] = log
	}
	room := l.limit - log.size
	log.size += int64(len(text))
	if log.err == nil && log.file != nil && room > 0 {
		_, log.err = log.file.Write(text[:min(room, int64(len(text)))])
	}
}

// end completes a log, and puts its name and its end into the record of the step.
func (l *memberLogs) end(record *eventsv1.StepFinished, label string, withShared bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if withShared || l.files[label] == nil {
		l.append(label, about(l.shared, label))
	}
	log := l.files[label]
	if log.file != nil {
		if err := log.file.Close(); log.err == nil {
			log.err = err
		}
		log.file = nil
	}
	record.Log, record.OutputBytes = log.name, log.size
	if log.err != nil {
		l.worker.Logger.Warn("the log of a step could not be kept", "target", record.Target, "error", log.err)
		return
	}
	tail := min(execution.TailLimit, int(l.worker.Configuration.Queues[l.job.queue].Steps.OutputTail))
	record.OutputTail = endOf(l.path(log.name), int64(tail))
}

// output returns the output of a target whose log has ended, as a file of a name.
func (l *memberLogs) output(label, log string) stepOutput {
	l.mu.Lock()
	defer l.mu.Unlock()
	return stepOutput{log: l.path(log), from: l.files[label].from}
}

func (l *memberLogs) path(name string) string {
	return filepath.Join(LogDir(l.worker.dir), filepath.FromSlash(name))
}

func (l *memberLogs) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, log := range l.files {
		if log.file != nil {
			log.file.Close()
		}
	}
}

// endOf returns the end of a file as text.
func endOf(name string, most int64) []byte {
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	content, _ := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-most), most))
	return bytes.ToValidUTF8(content, nil)
}

// about returns the lines of an output that name a target; all of it if none does.
func about(output []byte, label string) []byte {
	var lines []byte
	for line := range bytes.Lines(output) {
		at := bytes.Index(line, []byte(label))
		if at < 0 {
			continue
		}
		if rest := line[at+len(label):]; len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n:,;)'\""), rest[0]) >= 0 {
			lines = append(lines, line...)
		}
	}
	if lines == nil {
		return output
	}
	return lines
}
