// Made of openapi.yaml by make page.

export interface Status {
  status: string
}

export interface WhoAmI {
  mode: "open" | "required"
  issuer: string
  subject: string
  name?: string
  email?: string
  token?: string
  verbs?: string[]
  expires?: string
  roles: Record<string, "viewer" | "contributor" | "lander" | "operator" | "admin">
  may?: Permission[]
}

export interface Permission {
  verb: "read" | "logs" | "land" | "cancel" | "retry" | "verify" | "urgent" | "move" | "hold" | "pause" | "quarantine" | "simulate" | "models" | "deliveries" | "tokens"
  allowed: boolean
  allowed_for_own_changes?: boolean
  message?: string
  advice?: string
}

export interface Token {
  id: string
  name: string
  role: "viewer" | "contributor" | "lander" | "operator" | "admin"
  queues: string[]
  verbs?: string[]
  created: string
  created_by?: string
  expires?: string
  revoked?: string
  last_use?: string
}

export interface TokenList {
  tokens: Token[]
}

export interface TokenBody {
  name: string
  role?: "viewer" | "contributor" | "lander" | "operator" | "admin"
  verbs?: ("read" | "logs" | "land" | "cancel" | "retry" | "verify" | "urgent" | "move" | "hold" | "pause" | "quarantine" | "simulate" | "models" | "deliveries" | "tokens")[]
  queues: string[]
  ttl?: string
}

export interface TokenReply {
  token: Token
  secret: string
}

export interface AccessExplanation {
  allowed: boolean
  allowed_for_own_changes: boolean
  role: "none" | "viewer" | "contributor" | "lander" | "operator" | "admin"
  reason?: string
  rules: RuleLine[]
}

export interface RuleLine {
  rule: string
  role: "viewer" | "contributor" | "lander" | "operator" | "admin"
  applies: boolean
  why: string
}

export interface ModelList {
  queue: string
  models: ModelEntry[]
  omitted?: number
}

export interface ModelEntry {
  kind: string
  version?: string
  what: "promoted" | "rolled back" | "trained" | "declined"
  at: string
  who?: string
  why?: string
  in_use: boolean
  usable: boolean
  trouble?: string
  card?: ModelCard
}

export interface ModelCard {
  algorithm?: string
  training_rows: number
  choosing_rows: number
  newest_rows: number
  data_from: string
  data_until: string
  trained: string
  trained_by?: string
  verdict?: string
  figures?: ModelFigure[]
}

export interface ModelFigure {
  name: string
  of: string
  value: number
}

export interface ModelBody {
  version?: string
  kind?: string
  priors?: boolean
  who?: string
  why?: string
}

export interface DeadLetterList {
  letters: DeadLetter[]
  older?: number
}

export interface DeadLetter {
  place: string
  at: string
  queue?: string
  change?: string
  request_id?: string
  type?: string
  service: string
  reason: string
  advice?: string
  may_send: boolean
  record?: DeadRecord
  sent?: SentAgain
}

export interface DeadRecord {
  key?: string
  headers?: RecordHeader[]
  value?: string
}

export interface RecordHeader {
  name: string
  value: string
}

export interface SentAgain {
  at: string
  who?: string
  why?: string
  times: number
}

export interface SendBody {
  who?: string
  why?: string
}

export interface RevokeBody {
  why?: string
}

export interface Failure {
  error: FailureDetail
}

export interface FailureDetail {
  code: "unknown_queue" | "bad_request" | "no_such_ref" | "no_such_commit" | "ref_moved" | "already_in" | "empty" | "not_a_stack" | "unknown_requirement" | "cyclic_requirement" | "revision_taken" | "too_late" | "queue_full" | "repository_unreachable" | "request_id_taken" | "unauthenticated" | "forbidden" | "unknown_change" | "unknown_target" | "not_applied" | "forbidden_origin" | "unsupported_media_type" | "too_large" | "not_ready" | "not_healthy" | "unanswered" | "not_found" | "method_not_allowed" | "no_log" | "internal" | "too_many_streams" | "too_many_requests" | "provider_unreachable" | "history_unreachable" | "past_being_read" | "what_if_runs"
  message: string
  advice: string
}

export interface LandBody {
  change?: string
  revision?: number
  entries: LandEntry[]
  requires?: string[]
  author?: string
  team?: string
  title?: string
  description?: string
  uri?: string
  host?: "git" | "github" | "gerrit" | "gitlab" | "phabricator"
  benefit?: number
  labels?: Record<string, string>
  request_id?: string
}

export interface LandEntry {
  ref?: string
  commit?: string
}

export interface LandReply {
  request_id: string
  queue: string
  outcome: "admitted" | "unchanged" | "retried" | "pending"
  change?: string
  revision?: number
  state?: "pending" | "landed" | "dropped" | "rejected" | "ejected" | "cancelled"
  message: string
}

export interface SteerBody {
  who?: string
  why?: string
  revision?: number
  before?: string
  front?: boolean
  hold?: string
  target?: string
  until?: string
  force?: boolean
}

export interface SteerReply {
  queue: string
  message: string
  change?: Summary
}

export interface SignInWays {
  issuers: Way[]
}

export interface Way {
  name: string
  issuer: string
  start?: string
  client_id?: string
  scopes?: string[]
  problem?: string
}

export interface SignOutBody {
  everywhere?: boolean
}

export interface SignOutReply {
  ended: number
  message: string
  provider?: string
}

export interface QueueList {
  queues: Overview[]
}

export interface ChangeList {
  queue: Overview
  changes: Summary[]
}

export interface QuarantineList {
  queue: string
  quarantines: Quarantine[]
}

export interface FlakeList {
  queue: string
  rejecting: RejectingTarget[]
  flakes: Flake[]
}

export interface RejectingTarget {
  target: string
  owners?: string[]
  changes: number
  last_at: string
  last_change: string
  last_title?: string
}

export interface Quarantine {
  target: string
  until: string
  source: "operator" | "configuration" | "rate" | "unspecified"
  who?: string
  why?: string
  since: string
  unseen?: boolean
}

export interface Flake {
  target: string
  rate: number
  versions: number
  flakes: number
  lost_ms: number
  last_seen: string
  last_build?: string
  change?: string
  quarantined?: Quarantine
  owners?: string[]
}

export interface Analytics {
  queue: string
  weeks: number
  at?: string
  missing?: NoHistory
  written?: string
  verdicts: WeekOfVerdicts[]
  rejected: RejectedChange[]
  waits: WeekOfWaits[]
  builds: WeekOfBuilds[]
  work: WeekOfWork[]
  bypasses: WeekOfBypasses[]
  predictions: WeekOfAccuracy[]
  calibration: Calibration[]
  rejections: Rejecting[]
  flaky: FlakyRate[]
}

export interface NoHistory {
  message: string
  advice: string
}

export interface WeekOfVerdicts {
  week: string
  landed: number
  rejected: number
  conflicting: number
  confirmed: number
  contradicted: number
  ejected: number
}

export interface RejectedChange {
  change: string
  revision: number
  title: string
  author: string
  at: string
  class: string
  targets: string[]
  since?: "failed" | "passed"
}

export interface WeekOfWaits {
  week: string
  landed: number
  p50_s: number
  p95_s: number
  mean_s: number
  admission_s: number
  analysis_s: number
  worker_s: number
  building_s: number
  behind_s: number
  push_s: number
}

export interface WeekOfBuilds {
  week: string
  changes: number
  builds: number
  aborted: number
  per_change: number
}

export interface WeekOfWork {
  week: string
  changes: number
  hours: number
  per_change: number
}

export interface WeekOfBypasses {
  week: string
  landed: number
  bypassing: number
  rate: number
}

export interface WeekOfAccuracy {
  week: string
  changes: number
  predicted_rate: number
  landed_rate: number
  brier: number
  calibration_error: number
  durations: number
  mean_s: number
  mean_error_s: number
  covered: number
}

export interface Calibration {
  from_probability: number
  changes: number
  predicted_rate: number
  landed_rate: number
}

export interface Rejecting {
  target: string
  rejections: number
  changes: number
  last_at: string
  owners?: string[]
}

export interface FlakyRate {
  target: string
  versions: number
  flake_rate: number
  failure_rate: number
  p50_s: number
  owners?: string[]
}

export interface Timeline {
  pool: string
  from: string
  to: string
  since?: string
  queues: PoolQueue[]
  workers: WorkerTimeline[]
  busy_ms: number
  lost_ms: number
  idle: IdleSum[]
}

export interface PoolQueue {
  name: string
  workers: number
  paused?: boolean
}

export interface WorkerTimeline {
  worker: string
  instance: string
  alive?: boolean
  labels?: string[]
  steps: StepRun[]
  idle: IdleTime[]
  busy_ms: number
  lost_ms: number
}

export interface StepRun {
  queue?: string
  change?: string
  title?: string
  mainline?: boolean
  build?: string
  target?: string
  hash?: string
  attempt?: number
  state: "passed" | "failed" | "timed_out" | "aborted" | "could_not_run" | "running" | "lost" | "other" | "unknown"
  preempted?: boolean
  reason?: string
  log?: boolean
  from: string
  to?: string
}

export interface IdleTime {
  from: string
  to: string
  cause: "not_known" | "quota" | "needs" | "exclusive" | "dependencies" | "preparing" | "no_open_step"
  needs?: string[]
}

export interface IdleSum {
  cause: "not_known" | "quota" | "needs" | "exclusive" | "dependencies" | "preparing" | "no_open_step"
  ms: number
}

export interface Pool {
  name: string
  workers: number
  running_steps: number
  busy_workers: number
  open_steps: number
}

export interface Overview {
  queue: string
  repository?: string
  branch?: string
  strategy?: string
  head: string
  sequence: number
  shadow?: boolean
  paused?: Pause
  last_pause?: PauseOver
  earlier_pauses?: PauseOver[]
  paused_by_remote?: RemotePause
  pending: number
  waiting: number
  testing: number
  passed: number
  workers: number
  running_builds: number
  pool?: Pool
  mainline_red?: string[]
  mainline_red_since?: RedSince
  red_before_queue?: string[]
  mainline_failures?: Step[]
  need_retry?: string[]
  mainline_unproven?: number
  quarantined?: string[]
  quarantined_total?: number
  unseen_quarantines?: string[]
  service_troubles?: ServiceTrouble[]
  mainline_unreachable?: Trouble
  mainline_analyzed: boolean
  pace?: Pace
  models?: Model[]
}

export interface Pace {
  since: string
  landed: number[]
  last_landed_at?: string
  last_landed?: Landed
  waits: number
  wait_p50_s: number
  wait_p95_s: number
}

export interface Landed {
  change: string
  title?: string
}

export interface Part {
  kind: "queue" | "changes" | "change" | "graph" | "flakes" | "quarantines" | "models" | "what-if" | "dead-letters" | "services" | "tokens"
  queue: string
  change?: string
  value: unknown
}

export interface Graph {
  queue: string
  changes: Record<string, GraphNode>
}

export interface GraphNode {
  position: number
  state: "waiting" | "testing" | "passed"
  title?: string
  held?: boolean
  ahead?: GraphEdge[]
  ahead_total?: number
  futures?: GraphFuture[]
}

export interface GraphEdge {
  change: string
  targets?: string[]
  merge_conflict?: boolean
  required?: boolean
}

export interface GraphFuture {
  assumed: string[]
  state: "preparing" | "running" | "passed" | "failed" | "aborted" | "unusable" | "finished"
  needed: number
  steps_done: number
  steps_running?: number
  steps_total: number
  dead?: boolean
}

export interface RedSince {
  commit: string
  author?: string
  title?: string
  at?: string
  suspects: number
}

export interface Trouble {
  kind: "unspecified" | "branch_missing" | "unreadable" | "push_unanswered" | "unmade" | "push_refused"
  message: string
  since: string
  sentence: string
}

export interface ServiceTrouble {
  service: string
  since: string
  sentence: string
}

export interface Report {
  instances: Instance[]
  partitions: Ownership[]
  missing: Missing[]
}

export interface Capacity {
  pool?: string
  labels?: string[]
  resources?: Record<string, number>
  untold?: boolean
}

export interface Instance extends Capacity {
  service: string
  instance: string
  version: string
  alive: boolean
  started: string
  heard: string
  workers?: number
  busy?: number
  partitions?: number[]
  trouble?: string
}

export interface Ownership {
  service: string
  partition: number
  queues: string[]
  instance?: string
  term: number
  since?: string
  state: "working" | "reading" | "stalled" | "unowned" | "claimed"
  behind_records: number
}

export interface Missing {
  service: string
  partition: number
  queues: string[]
  since: string
  sentence: string
}

export interface Dropped {
  at: string
  head: string
}

export interface Model {
  kind: string
  version: string
  trouble?: string
  since?: string
}

export interface Pause {
  who: string
  why: string
  since?: string
}

export interface PauseOver extends Pause {
  until: string
  resumed_by: string
  resumed_why: string
}

export interface RemotePause {
  message: string
  since: string
  sentence: string
}

export interface Summary {
  queue: string
  change: string
  revision: number
  state: "waiting" | "testing" | "passed" | "landed" | "dropped" | "rejected" | "ejected" | "cancelled"
  position?: number
  title?: string
  author?: string
  team?: string
  why: string
  names?: string[]
  held?: boolean
  blocked?: boolean
  urgent?: boolean
  running_builds: number
  steps_done: number
  steps_running?: number
  steps_total: number
  admitted_at: string
  finished_at?: string
  eta?: ETA
  commits?: string[]
  bypassed?: string[]
  dropped?: Dropped
  failure?: Fault
  flaky?: FlakyTarget[]
}

export interface FlakyTarget {
  target: string
  owners?: string[]
}

export interface Fault {
  target: string
  owners?: string[]
  step?: string
  whose: "yours" | "ahead" | "mainline" | "unknown"
  with?: string[]
  sentence: string
  lines: string[]
  also?: string[]
  hash?: string
  attempt?: number
  log?: string
}

export interface ETA {
  median?: string
  from_50?: string
  to_50?: string
  from_90?: string
  to_90?: string
  lands?: number
  overdue_from?: string
  unknown?: string
}

export interface Update extends Summary {
  events: Event[]
}

export interface Change extends Summary {
  description?: string
  uri?: string
  benefit: number
  labels?: Record<string, string>
  entries: Pinned[]
  mainline: string
  requires?: Related[]
  holds?: Hold[]
  analysis?: Analysis
  reasons: Reason[]
  ahead?: Ahead[]
  builds?: Build[]
  landing?: Landing
  rejection?: Rejection
  last_refusal?: Refusal
  timeline: Event[]
  omitted_events?: number
  revisions: Revision[]
}

export interface WhatIf {
  queue: string
  present: Setting
  run?: Simulation
  busy?: boolean
  missing?: string
}

export interface WhatIfBody {
  workers?: number
  threshold?: number
  bypass_threshold?: number
  changes?: number
  who?: string
}

export interface Setting {
  workers: number
  threshold: number
  bypass_threshold: number
}

export interface Simulation {
  state: "running" | "done" | "failed" | "cancelled"
  present: Setting
  chosen: Setting
  changes: number
  who?: string
  started_at: string
  ended_at?: string
  done: number
  message?: string
  result?: Comparison
}

export interface Comparison {
  present: SettingFigures
  chosen: SettingFigures
  changes: number
  from: string
  to: string
  sentence: string
}

export interface SettingFigures {
  wait_p50_s: number
  wait_p95_s: number
  slowdown: number
  worker_hours: number
}

export interface Revision {
  revision: number
  at: string
  base: string
  head: string
}

export interface Difference {
  queue: string
  change: string
  from: Revision
  to: Revision
  text: string
  cut?: boolean
  with_mainline?: boolean
}

export interface Explanation extends Summary {
  reasons: Reason[]
  requires?: Related[]
  ahead?: Ahead[]
  builds?: Build[]
  landing?: Landing
  rejection?: Rejection
  last_refusal?: Refusal
  timeline: Event[]
  waiting_step?: WaitingStep
  full?: Full
}

export interface WaitingStep {
  sentence: string
  pool?: string
  open: number
  before: number
  before_more?: boolean
  quota?: Quota
  patience_s: number
  step?: RankedStep
  first?: RankedStep
}

export interface Quota {
  of: "queue" | "team" | "author"
  name?: string
  steps: number
  running: number
}

export interface RankedStep {
  target: string
  hash: string
  attempt: number
  labels?: string[]
  urgent?: boolean
  ready: boolean
  late?: boolean
  index: number
  builds: StepShare[]
}

export interface StepShare {
  build: string
  change?: string
  value: number
  waited_s: number
  work_left_s: number
  index: number
}

export interface Full {
  position: number
  at: string
  prediction?: Prediction
  verdict?: Verdict
  ranked: RankedPath[]
  builds: BuildReasons[]
  decisions: DecisionTaken[]
  omitted?: string
}

export interface RankedPath {
  rank: number
  build?: string
  needed: number
  value: number
  worth?: Worth
}

export interface BuildReasons {
  build: string
  state: string
  position: number
  why?: string
  message?: string
  needed: number
  value: number
  then?: Worth
  now?: Worth
}

export interface DecisionTaken {
  decision: "landed" | "rejected" | "ejected"
  position: number
  at: string
  then?: Verdict
}

export interface Prediction {
  success: number
  success_from: string
  duration_mean: number
  duration_std: number
  duration_from: string
  lands: number
}

export interface Worth {
  assumed: string[]
  rejected: string[]
  state: "unknown" | "green" | "red" | "exhausted" | "blocked"
  needed: number
  likely: number
  value: number
  in_pool?: number
  benefit: number
  soon: number
  threshold: number
  rule?: string
  factors: Factor[]
}

export interface Factor {
  change?: string
  others?: number
  assumed?: "lands" | "rejected"
  probability: number
  finishes_first: number
  factor: number
  terms?: Term[]
}

export interface Term {
  says: string
  value: number
  from: string
  of?: Term[]
  proof?: Proof[]
}

export interface Proof {
  target: string
  build?: string
  attempt?: number
  outcome?: string
}

export interface Verdict {
  decision: "land" | "reject" | "eject" | "wait"
  why: string
  ahead: string[]
  green: number
  red: number
  open: number
  paths: Path[]
}

export interface Path {
  assumed: string[]
  state: "unknown" | "green" | "red" | "exhausted" | "blocked"
  message?: string
  outstanding?: string[]
  more?: number
  builds?: string[]
  covered?: boolean
  proof?: Proof[]
}

export interface Reason {
  code: "landed" | "dropped" | "rejected" | "ejected" | "cancelled" | "landing" | "paused" | "held" | "requires" | "mainline" | "analysis" | "mainline_red" | "building" | "no_worker" | "quota" | "ahead" | "deciding" | "mainline_unreachable" | "push_refused" | "paused_by_remote" | "service_missing" | "cannot_land"
  sentence: string
  changes?: string[]
  targets?: string[]
  who?: string
}

export interface Pinned {
  ref?: string
  commit: string
}

export interface Related {
  change: string
  state: string
}

export interface Hold {
  name: string
  who: string
  why: string
}

export interface Analysis {
  base: string
  outcome: "analyzed" | "unmergeable" | "invalid"
  targets?: string[]
  targets_total: number
  targets_without_steps?: number
  everything?: boolean
  uncovered?: Uncovered
  message?: string
  conflicting_paths?: string[]
  files_changed: number
  lines_added: number
  lines_deleted: number
}

export interface Uncovered {
  files?: string[]
  files_total?: number
  policy?: "whole_repository" | "warn"
  ignored?: string[]
  ignored_total?: number
}

export interface Ahead {
  change: string
  title?: string
  revision: number
  state: "waiting" | "testing" | "passed" | "landed" | "dropped" | "rejected" | "ejected" | "cancelled"
  steps_running?: number
  held?: boolean
  targets?: string[]
  merge_conflict?: boolean
  required?: boolean
}

export interface Build {
  build: string
  state: "preparing" | "running" | "passed" | "failed" | "aborted" | "unusable" | "finished"
  base: string
  assumed: string[]
  why?: string
  message?: string
  needed: number
  steps_done: number
  steps_running?: number
  steps_total: number
  scheduled_at: string
  ended_at?: string
  steps?: Step[]
  earlier_runs?: Step[]
}

export interface Step {
  target: string
  hash?: string
  commit?: number
  state: "outstanding" | "running" | "trivial" | "passed" | "failed" | "timed_out" | "aborted" | "could_not_run" | "unknown"
  attempt?: number
  build?: string
  failed_command?: string
  message?: string
  lines?: string[]
  worker?: string
  duration_ms?: number
  started_at?: string
  finished_at?: string
  log?: string
  quarantined?: boolean
  flaky?: boolean
  owners?: string[]
  output_tail?: string
}

export interface Landing {
  base: string
  commits: string[]
  tree: string
  proof: Step[]
  bypassed?: string[]
  quarantined?: string[]
  at: string
}

export interface Rejection {
  class: "unspecified" | "step_failed" | "merge_conflict" | "invalid" | "requirement" | "timed_out" | "infrastructure"
  message: string
  conflicting?: string
  failed?: Step[]
  base?: string
  at: string
}

export interface Refusal {
  base: string
  message: string
  missing?: string[]
  refused_pushes?: number
  at: string
}

export interface Event {
  at: string
  kind: string
  text: string
  by?: string
  earlier?: boolean
}
