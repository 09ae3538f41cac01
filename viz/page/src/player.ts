// SPDX-License-Identifier: Apache-2.0
//
// The player: moves the shared clock, over rounds or over a run's time, and says what happens now.
import { nowLine, timeText } from "./clock";
import { after } from "./later";
import { Change, ClockKind, SPEEDS, Store } from "./store";
import { icon, make } from "./view";

const STEPS = 1000; // of the slider, over time
const ROUNDS_PER_SECOND = 2; // at least; a long plan takes a minute
const SECONDS_MAX = 60;
const SPEAK_EVERY_MS = 1500;
const SECONDS_OF_RUN = 20; // that a run takes at speed 1

const ICONS = {
  start: "M3 3h2v10H3zM13 3v10L6 8z",
  back: "M11 3v10L4 8z",
  play: "M4 2v12l9-6z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  on: "M5 3v10l7-5z",
  end: "M11 3h2v10h-2zM3 3v10l7-5z",
};

export class Player {
  readonly element = make("footer", { class: "player", "aria-label": "Player" });
  private readonly play = make("button", { type: "button", class: "play" });
  private readonly slider = make("input", { type: "range", min: "0", "aria-label": "Clock" });
  private readonly kind = make("select", { "aria-label": "What the clock counts" });
  private readonly speed = make("select", { "aria-label": "Speed" });
  private readonly value = make("output", { class: "value" });
  private readonly now = make("p", { class: "now" });
  // The same for those who listen, not more often than one can hear.
  private readonly spoken = make("p", { class: "spoken", "aria-live": "polite" });
  private speaks = false;
  private last = 0;
  private part = 0; // of a round

  constructor(private readonly store: Store) {
    const button = (label: string, path: string, act: () => void) => {
      const element = make(
        "button",
        { type: "button", "aria-label": label, title: label },
        icon(path),
      );
      element.onclick = act;
      return element;
    };
    this.play.onclick = () => this.toggle();
    this.slider.oninput = () => {
      const share = Number(this.slider.value) / Number(this.slider.max || 1);
      store.set({ playing: false });
      store.setClock(share * store.end());
    };
    this.kind.append(make("option", { value: "rounds" }, "rounds"));
    if (store.hasRun) this.kind.append(make("option", { value: "time" }, "time"));
    this.kind.onchange = () => store.setClockKind(this.kind.value as ClockKind);
    this.kind.disabled = !store.hasRun;
    for (const speed of SPEEDS) {
      this.speed.append(make("option", { value: String(speed) }, `${speed}\u00d7`));
    }
    this.speed.onchange = () => store.set({ speed: Number(this.speed.value) });
    this.element.append(
      make(
        "div",
        { class: "controls" },
        button("To the start (Home)", ICONS.start, () => this.go(0)),
        button("A step back (Left)", ICONS.back, () => this.step(-1)),
        this.play,
        button("A step on (Right)", ICONS.on, () => this.step(1)),
        button("To the end (End)", ICONS.end, () => this.go(store.end())),
        this.slider,
        this.value,
        this.kind,
        this.speed,
      ),
      this.now,
      this.spoken,
    );
    this.update();
  }

  go(value: number): void {
    this.store.set({ playing: false });
    this.store.setClock(value);
  }
  /** A round, or a hundredth of the run. */
  step(by: number): void {
    const { clock } = this.store.state;
    const size = clock.kind === "rounds" ? 1 : this.store.end() / 100;
    this.go(clock.value + by * size);
  }
  toggle(): void {
    const { store } = this;
    if (store.end() === 0) return;
    const playing = !store.state.playing;
    if (playing && store.state.clock.value >= store.end()) store.setClock(0);
    store.set({ playing });
    if (!playing) return;
    this.last = performance.now();
    this.part = 0;
    requestAnimationFrame((now) => this.tick(now));
  }

  private tick(now: number): void {
    const { store } = this;
    if (!store.state.playing) return;
    const seconds = Math.max(0, now - this.last) / 1000;
    this.last = now;
    const { clock, speed } = store.state;
    if (clock.kind === "rounds") {
      this.part += seconds * speed * Math.max(ROUNDS_PER_SECOND, store.end() / SECONDS_MAX);
      const whole = Math.floor(this.part);
      this.part -= whole;
      if (whole > 0) store.setClock(clock.value + whole);
    } else {
      store.setClock(clock.value + (seconds * speed * store.end()) / SECONDS_OF_RUN);
    }
    if (store.state.clock.value >= store.end()) store.set({ playing: false });
    else requestAnimationFrame((next) => this.tick(next));
  }

  changed(change: Change): void {
    const keys = ["clock", "playing", "speed", "side"] as const;
    if (keys.some((key) => change.has(key))) this.update();
  }

  private update(): void {
    const { store } = this;
    const { clock, playing, speed } = store.state;
    const end = store.end();
    this.play.replaceChildren(icon(playing ? ICONS.pause : ICONS.play));
    this.play.setAttribute("aria-label", playing ? "Pause (space)" : "Play (space)");
    this.play.title = this.play.getAttribute("aria-label")!;
    const rounds = clock.kind === "rounds";
    this.slider.max = String(rounds ? Math.max(1, end) : STEPS);
    this.slider.value = String(rounds ? clock.value : Math.round((clock.value / end) * STEPS));
    this.kind.value = clock.kind;
    this.speed.value = String(speed);
    const text = rounds
      ? clock.value >= end
        ? "end"
        : `round ${clock.value}`
      : timeText(clock.value);
    this.value.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
    const which = store.sides.length > 1 ? `${"AB"[store.state.side]}: ` : "";
    this.now.textContent = which + nowLine(store.side, clock);
    if (this.speaks) return;
    this.speaks = true;
    after(SPEAK_EVERY_MS, () => {
      this.speaks = false;
      this.spoken.textContent = this.now.textContent;
    });
  }
}
