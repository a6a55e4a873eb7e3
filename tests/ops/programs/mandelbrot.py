"""The Mandelbrot set: after how many steps each point of the plane has escaped."""


def run(xp, n=30, m=40, steps=20):
    y, x = xp.meshgrid(xp.linspace(-1.5, 1.5, n), xp.linspace(-2, 1, m), indexing="ij")
    c = x + 1j * y
    z, count = xp.zeros(c.shape, complex), xp.zeros(c.shape, int)
    for _ in range(steps):
        alive = abs(z) <= 2
        z = xp.where(alive, z * z + c, z)
        count += alive
    return count
