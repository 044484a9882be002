"""The recipe `speed`: what is called compiled is compiled while it is timed."""

from contextlib import contextmanager
from dataclasses import replace

from rotarymae.system import Reporter
from rotarymae_experiments import Trial
from rotarymae_experiments.recipes import speed


def test_blocks_are_compiled_while_they_are_timed(tmp_path, monkeypatch):
    compiled, took = [], speed._Step.seconds

    @contextmanager
    def compiling(model):
        compiled.append(model)
        yield
        compiled.remove(model)

    def seconds(self):
        assert self.model in compiled
        return took(self)

    monkeypatch.setattr(speed, "compile_blocks", compiling)
    monkeypatch.setattr(speed._Step, "seconds", seconds)
    setup = replace(speed.RECIPE.configure("smoke", "ours"), compile=True)
    speed.run(setup, "training step", Trial(0, tmp_path, Reporter(quiet=True)))
    assert not compiled
