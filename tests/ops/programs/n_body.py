"""Bodies that attract each other, moved by the leapfrog method; their energy before and after."""

import numpy

SOFT = 0.1


def forces(xp, place, mass):
    apart = place[None, :, :] - place[:, None, :]
    square = (apart**2).sum(axis=-1) + SOFT**2
    return ((mass * square**-1.5)[..., None] * apart).sum(axis=1)


def energy(xp, place, speed, mass):
    distance = xp.sqrt(((place[None] - place[:, None]) ** 2).sum(axis=-1) + SOFT**2)
    pairs = xp.triu(mass[:, None] * mass / distance, 1)
    return 0.5 * (mass[:, None] * speed**2).sum() - pairs.sum()


def run(xp, n=30, steps=10, dt=0.01):
    rng = numpy.random.default_rng(3)
    place, speed, mass = (
        xp.asarray(x) for x in (rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), rng.uniform(0.5, 1, n))
    )
    before = energy(xp, place, speed, mass)
    pull = forces(xp, place, mass)
    for _ in range(steps):
        speed = speed + 0.5 * dt * pull
        place = place + dt * speed
        pull = forces(xp, place, mass)
        speed = speed + 0.5 * dt * pull
    return place, before, energy(xp, place, speed, mass)
