"""Bodies that attract each other, under a decorator for the time, with classes and generators around the arrays."""
import dataclasses
import functools
import time

import cupy as cp
import numpy as np


def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        start = time.perf_counter()
        result = function(*args, **kwargs)
        cp.cuda.Stream.null.synchronize()
        wrapper.seconds = time.perf_counter() - start
        return result
    return wrapper


@dataclasses.dataclass
class Bodies:
    position: cp.ndarray
    velocity: cp.ndarray
    mass: cp.ndarray

    def acceleration(self, softening=0.1):
        offset = self.position[None, :, :] - self.position[:, None, :]
        inverse = (cp.sum(offset ** 2, axis=-1) + softening ** 2) ** -1.5
        cp.fill_diagonal(inverse, 0)
        return cp.einsum("ij,ijk,j->ik", inverse, offset, self.mass)

    def energy(self, softening=0.1):
        kinetic = 0.5 * (self.mass[:, None] * self.velocity ** 2).sum()
        distance = cp.sqrt(cp.linalg.norm(self.position[:, None] - self.position, axis=-1) ** 2 + softening ** 2)
        i, j = cp.triu_indices(len(self.mass), 1)
        return kinetic - (self.mass[i] * self.mass[j] / distance[i, j]).sum()


@timed
def simulate(bodies, dt, steps):
    acceleration = bodies.acceleration()
    for _ in range(steps):
        bodies.velocity += acceleration * (dt / 2)
        bodies.position += bodies.velocity * dt
        acceleration = bodies.acceleration()
        bodies.velocity += acceleration * (dt / 2)
        yielded = bodies.energy()
    return yielded


rng = np.random.default_rng(11)
bodies = Bodies(*map(cp.asarray, (rng.normal(size=(30, 3)), rng.normal(size=(30, 3)) / 5, rng.random(30))))
before = bodies.energy()
after = simulate(bodies, 0.002, 60)
print(float(before), float(after), simulate.seconds > 0, f"{float(before - after):.2f}")
print(bodies.position[:3], bodies.velocity.mean(axis=0))
print((bodies.mass[:, None] * bodies.velocity).sum(axis=0))
