"""Makes the files of this folder with NumPy, SciPy and h5py, for tests/others.rs.

The values follow simple formulas that the tests repeat. Run it here: python make.py
"""
import h5py
import numpy as np
import scipy.io

rows, cols, bands, emitters = 3, 4, 5, 2
r, i, j, k = np.ogrid[:emitters, :rows, :cols, :bands]
slf = (1 + r[..., 0] + 2 * i[..., 0] + 3 * j[..., 0]) / 8.0
psd = (1 + 3 * r[:, 0, 0] + k[0, 0]) / 4.0
power = np.einsum("rij,rk->ijk", slf, psd)
freq = 2.412e9 + 5e6 * np.arange(bands)
T, S, C = power, np.moveaxis(slf, 0, 2), psd.T


def every_type():
    """One array per element type; NumPy writes them in both orders."""
    types = "?bBhHiIqQefd"
    arrays = {}
    for letter in types:
        values = np.arange(6).reshape(2, 3) % (2 if letter == "?" else 100)
        arrays["little_" + str(ord(letter))] = values.astype(np.dtype(letter).newbyteorder("<"))
        arrays["big_" + str(ord(letter))] = values.astype(np.dtype(letter).newbyteorder(">"))
    arrays["fortran"] = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    arrays["text"] = np.array(["not", "numbers"])
    return arrays


np.savez("types.npz", **every_type())
np.savez("factored.npz", map=power, slf=slf, psd=psd, freq_hz=freq, cell_m=10.0,
         emitters=np.array([[0, 1], [2, 3]]), spread_db=np.full_like(power, 1.5))
np.savez_compressed("float32.npz", map=np.asfortranarray(power.astype(np.float32)))
np.savez("mismatch.npz", map=power, slf=slf + 1, psd=psd)
np.savez("simulator.npz", T=np.moveaxis(power, 2, 0) * 1.01, T_true=np.moveaxis(power, 2, 0),
         S_true=slf, C_true=psd)

cells = np.array([[0, 0], [2, 3], [1, 2]])
values = np.array([[1, np.nan], [0.5, 0.25], [0.125, 2]])
levels = np.array([[0, 255], [3, 1], [2, 2]], dtype=np.uint8)
quantiser = dict(edges=[-3.0, -2.0, -0.5], sigma=1.7, a=1e-6)
np.savez("values.npz", grid=[3, 4], cells=cells, values=values, freq_hz=freq[:2])
np.savez("levels.npz", grid=[3, 4], cells=cells.astype(np.float32), levels=levels, **quantiser)

authors = dict(T=T * 1.01, T_true=T, S_true=S, C_true=C, Om=T[:, :, 0] > 1, title="a survey")
scipy.io.savemat("authors.mat", authors)
scipy.io.savemat("authors_deflated.mat", authors, do_compression=True)
dbm = np.round(10 * np.log10(power)).astype(np.int16)
dbm[1, 2, :] = 0
scipy.io.savemat("survey_dbm.mat", {"T": dbm})
scipy.io.savemat("matrix.mat", {"layer": power[:, :, 0].astype(np.float32)})
scipy.io.savemat("levels.mat", dict(grid=[3, 4], cells=cells, levels=levels, **quantiser))


def matlab73(name, arrays, **options):
    """What MATLAB's save -v7.3 makes: a 512-byte text block, axes in reverse order."""
    with h5py.File(name, "w", userblock_size=512) as file:
        for key, array in arrays.items():
            data = np.atleast_2d(array).T
            file.create_dataset(key, data=data, **(options if data.size > 40 else {}))
            file[key].attrs["MATLAB_class"] = np.bytes_("double")
    with open(name, "r+b") as file:
        text = b"MATLAB 7.3 MAT-file, Platform: GLNXA64"
        file.write(text.ljust(124) + b"\x00\x02IM")


matlab73("authors73.mat", dict(T=T * 1.01, T_true=T, S_true=S, C_true=C, freq_hz=freq))
matlab73("authors73_chunked.mat", dict(T_true=T, S_true=S, C_true=C),
         chunks=True, compression="gzip", shuffle=True)
matlab73("levels73.mat", dict(grid=np.array([3, 4]), cells=cells, levels=levels,
                              edges=np.array(quantiser["edges"]), sigma=1.7, a=1e-6))
