import { plural } from "./words"

// Progress is how many steps of how many are done.
export function Progress({ done, total }: { done: number; total: number }) {
  return (
    <span class="progress">
      <progress max={total} value={done} aria-label={`${done} of ${plural(total, "step")} done`} />
      <span>
        {done} of {total}
      </span>
    </span>
  )
}
