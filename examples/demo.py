"""The main job in one breath: learn ALARM from private rows at epsilon 1, release it, ask it a question."""

import sys
from pathlib import Path

import dpbn

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
truth = dpbn.load_network("alarm")
patients = truth.sample(10_000, seed=0)  # stands for the hospital's private table

release = dpbn.learn(patients, truth.structure, epsilon=1.0)
path = release.save(folder / "alarm.release.json")
print(release.statement)

ask = dpbn.Inference(dpbn.load_release(path))
answer = ask.query(["HR"], {"BP": "LOW"})
print("P(HR | BP=LOW)")
for state, value, true in zip(
    truth.states("HR"), answer.values, dpbn.Inference(truth).query(["HR"], {"BP": "LOW"}).values, strict=True
):
    print(f"  {state:8} {value:.3f}   (true network: {true:.3f})")
print(f"\nrelease written to {path}")
