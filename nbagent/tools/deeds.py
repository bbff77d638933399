"""What a call would do, by the name of what is called: files written, deleted, moved, objects changed, the network.

Tables of libraries that analysts use, and how they are read. It must not know of syntax: it gets what is known of the
function and its arguments. Read `Called`, then `deeds`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from nbagent.tools.commands import (
    CHANGES_DATABASE,
    CHANGES_ENVIRONMENT,
    CHANGES_FOLDER,
    CLEARS,
    WORDS,
    network,
    said_of_command,
    said_of_sql,
    short,
)
from nbagent.tools.known import CONTAINERS, UNKNOWN, Value
from nbagent.tools.signs import (
    DELETES,
    EXIT_ATTRIBUTES,
    EXIT_CALLS,
    EXIT_NAMES,
    EXITS,
    NETWORK,
    READER,
    SHELL,
    URL,
    label_of,
)


@dataclass(frozen=True, slots=True)
class Called:
    """One call: the dotted name of the function, the method's own name, the object before its dot, the arguments."""

    meant: str
    method: str
    owner: Value
    args: tuple[Value, ...]
    keywords: dict[str, Value] = field(default_factory=dict[str, Value])

    def argument(self, place: int, *names: str) -> Value | None:
        """Return an argument given by its place or by one of its names; None if it is not given."""
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        return self.args[place] if 0 <= place < len(self.args) else None

    @property
    def given(self) -> tuple[Value, ...]:
        """All arguments."""
        return (*self.args, *self.keywords.values())


_OPENS = {  # function → where its mode stands
    **dict.fromkeys(("open", "io.open", "gzip.open", "bz2.open", "lzma.open", "codecs.open", "fsspec.open"), 1),
    **dict.fromkeys(("aiofiles.open", "smart_open.open", "tarfile.open", "zipfile.ZipFile", "bz2.BZ2File"), 1),
    **dict.fromkeys(("gzip.GzipFile", "tarfile.TarFile", "h5py.File", "netCDF4.Dataset", "wave.open", "dbm.open"), 1),
    "numpy.memmap": 2,
    **dict.fromkeys(("pandas.HDFStore", "tables.open_file", "rasterio.open", "soundfile.SoundFile", "os.fdopen"), 1),
}
_WRITES: dict[str, tuple[int, str]] = {  # function → where the file is named
    **dict.fromkeys(("numpy.save", "numpy.savez", "numpy.savez_compressed"), (0, "file")),
    "numpy.savetxt": (0, "fname"),
    **dict.fromkeys(("joblib.dump", "torch.save", "safetensors.torch.save_file", "skops.io.dump"), (1, "filename")),
    **dict.fromkeys(("matplotlib.pyplot.savefig", "matplotlib.pyplot.imsave", "pylab.savefig"), (0, "fname")),
    **dict.fromkeys(("cv2.imwrite", "imageio.imwrite", "imageio.v2.imwrite", "imageio.v3.imwrite"), (0, "filename")),
    **dict.fromkeys(("skimage.io.imsave", "soundfile.write", "scipy.io.wavfile.write"), (0, "filename")),
    **dict.fromkeys(("scipy.io.savemat", "scipy.sparse.save_npz"), (0, "file_name")),
    **dict.fromkeys(("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree"), (1, "dst")),
    **dict.fromkeys(("os.symlink", "os.link"), (1, "dst")),
    "shutil.make_archive": (0, "base_name"),
    "shutil.unpack_archive": (1, "extract_dir"),
    **dict.fromkeys(("pyarrow.parquet.write_table", "pyarrow.parquet.ParquetWriter"), (1, "where")),
    "pyarrow.parquet.ParquetWriter": (0, "where"),
    "pyarrow.parquet.write_to_dataset": (1, "root_path"),
    **dict.fromkeys(("pyarrow.csv.write_csv", "pyarrow.orc.write_table"), (1, "output_file")),
    "pyarrow.feather.write_feather": (1, "dest"),
    "pyarrow.dataset.write_dataset": (1, "base_dir"),
    "urllib.request.urlretrieve": (1, "filename"),
    "wget.download": (1, "out"),
    **dict.fromkeys(("pandas.ExcelWriter", "xlsxwriter.Workbook"), (0, "path")),
    **dict.fromkeys(("shelve.open", "logging.FileHandler", "logging.handlers.RotatingFileHandler"), (0, "filename")),
    **dict.fromkeys(("fastparquet.write", "fastavro.writer", "geopandas.io.file.to_file"), (0, "filename")),
    **dict.fromkeys(("plotly.io.write_html", "plotly.io.write_image", "plotly.io.write_json"), (1, "file")),
    "plotly.offline.plot": (9, "filename"),
    "nbformat.write": (1, "fp"),
    "os.mkfifo": (0, "path"),
    "os.truncate": (0, "path"),
}
_METHOD_WRITES: dict[str, tuple[int, tuple[str, ...]]] = {  # method of any object → where the file is named
    **dict.fromkeys(("to_csv", "to_json", "to_html", "to_latex", "to_xml", "to_hdf", "to_markdown", "to_string"),
                    (0, ("path_or_buf", "buf"))),
    **dict.fromkeys(("to_parquet", "to_pickle", "to_feather", "to_stata", "to_orc", "to_zarr", "to_netcdf"),
                    (0, ("path", "store"))),
    **dict.fromkeys(("to_excel",), (0, ("excel_writer",))),
    **dict.fromkeys(("to_file",), (0, ("filename",))),
    **dict.fromkeys(("write_csv", "write_parquet", "write_ndjson", "write_ipc", "write_avro", "write_excel"),
                    (0, ("file", "workbook"))),
    **dict.fromkeys(("write_html", "write_image", "write_json", "write_delta"), (0, ("file", "target"))),
    **dict.fromkeys(("sink_parquet", "sink_csv", "sink_ipc", "sink_ndjson"), (0, ("path",))),
    **dict.fromkeys(("savefig",), (0, ("fname",))),
    **dict.fromkeys(("tofile",), (0, ("fid",))),
    **dict.fromkeys(("save", "save_model", "save_weights", "save_pretrained", "save_to_disk", "export_html", "to_gbq_file"),
                    (0, ("fp", "filename", "path", "filepath"))),
    **dict.fromkeys(("extractall",), (0, ("path",))),
}  # fmt: skip
_MAY_RETURN = frozenset({"to_csv", "to_json", "to_html", "to_latex", "to_xml", "to_markdown", "to_string", "write_csv",
                         "write_json", "write_ndjson", "write_ipc", "write_avro", "to_netcdf"})  # fmt: skip
"""Methods that return their text if no file is named."""
_BUFFER = re.compile(
    r"(?:io\.(?:StringIO|BytesIO)|sys\.std(?:out|err)|.*\bopen)\(?\)?\Z|.*(?:TemporaryFile|ZipFile|ExcelWriter|HDFStore|Workbook)\(\)\Z"
)
_PATH_WRITES = frozenset({"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "link_to"})
_DELETES_FILE = {"os.remove": 0, "os.unlink": 0, "pathlib.Path.unlink": 0, "send2trash.send2trash": 0, "send2trash": 0}
_DELETES_FOLDER = {"shutil.rmtree": 0, "os.rmdir": 0, "os.removedirs": 0, "pathlib.Path.rmdir": 0}
_MOVES = frozenset(
    {"os.rename", "os.renames", "os.replace", "shutil.move", "pathlib.Path.rename", "pathlib.Path.replace"}
)
_MAKES = {"os.mkdir": 0, "os.makedirs": 0, "pathlib.Path.mkdir": 0}
_TEMPORARY = frozenset(
    {"NamedTemporaryFile", "TemporaryFile", "SpooledTemporaryFile", "mkstemp", "mkdtemp", "TemporaryDirectory"}
)
_SETTINGS = re.compile(
    r"(?:pandas\.(?:set_option|reset_option)|numpy\.(?:set_printoptions|seterr)|matplotlib\.(?:pyplot\.)?(?:style\.use|use|rc|"
    r"rcdefaults|switch_backend|xkcd)|seaborn\.set\w*|warnings\.(?:simplefilter|filterwarnings|resetwarnings)|"
    r"logging\.(?:basicConfig|disable)|locale\.setlocale|sys\.(?:setrecursionlimit|settrace|setprofile)|"
    r"socket\.setdefaulttimeout|signal\.signal|polars\.Config\.set_\w+|pandas\.options\.plotting\.\w+)\Z"
)
_ENVIRONMENT = re.compile(
    r"(?:os\.(?:putenv|unsetenv)|os\.environ\.(?:update|pop|setdefault|clear|popitem)|dotenv\.load_dotenv)\Z"
)
_DATABASE = frozenset(
    {"insert_one", "insert_many", "update_one", "update_many", "replace_one", "delete_one", "delete_many", "bulk_write",
     "drop_collection", "drop_database", "drop_all", "create_all", "bulk_insert_mappings", "bulk_save_objects",
     "write_database"}
)  # fmt: skip
_PREPARES = re.compile(
    r"\b(?:Session|session|Client|AsyncClient|ClientSession|client|resource|Request|socket\.socket|SSHClient|PoolManager)\Z"
    r"|\A\??(?:requests|httpx|httpx2)\.(?:get|post|put|patch|delete|head|options|request)\(\)\.|\.urlopen\(\)\."
)
"""What only makes ready to go to the network, or reads the answer that came from there."""
_RUNS_SQL = frozenset({"execute", "executemany", "executescript", "sql", "query", "exec_driver_sql", "run"})

_CHANGES_FIRST = frozenset(
    {
        *("random.shuffle", "numpy.random.shuffle", "numpy.copyto", "numpy.put", "numpy.place", "numpy.putmask"),
        *("numpy.fill_diagonal", "numpy.put_along_axis", "heapq.heappush", "heapq.heappop", "heapq.heapify", "next"),
        *("heapq.heapreplace", "heapq.heappushpop", "bisect.insort", "bisect.insort_left", "bisect.insort_right"),
        *(
            "setattr",
            "delattr",
            "operator.setitem",
            "operator.delitem",
            "operator.iadd",
            "operator.iconcat",
            "operator.imul",
        ),
        *(f"list.{name}" for name in ("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse")),
        *(f"dict.{name}" for name in ("update", "pop", "popitem", "setdefault", "clear")),
        *(f"set.{name}" for name in ("add", "remove", "discard", "pop", "clear", "update")),
        *("list.__setitem__", "dict.__setitem__", "object.__setattr__", "object.__delattr__", "torch.nn.init"),
    }
)
_IN_PLACE: dict[str, frozenset[str]] = {  # family → its methods that change the object
    "pandas": frozenset({"insert", "pop", "update", "__setitem__", "__delitem__"}),
    "polars": frozenset({"insert_column", "replace_column", "drop_in_place", "extend", "append", "set_at_idx", "scatter"}),
    "numpy": frozenset({"sort", "fill", "put", "itemset", "resize", "partition", "setflags", "setfield"}),
    "": frozenset(
        {
            *("append", "extend", "insert", "remove", "discard", "clear", "reverse", "sort", "pop", "popitem", "update"),
            *("add", "setdefault", "appendleft", "extendleft", "popleft", "rotate", "fill", "subtract", "put", "put_nowait"),
            *("difference_update", "intersection_update", "symmetric_difference_update", "fit", "partial_fit"),
            *("fit_transform", "fit_predict", "set_params", "load_state_dict", "zero_grad", "step", "drop_in_place"),
            *("insert_column", "replace_column", "add_trace", "add_traces", "update_layout", "update_traces"),
            *("update_xaxes", "update_yaxes", "compile", "__setitem__", "__delitem__", "__setattr__", "move_to_end"),
            *("register_forward_hook", "set_index_", "get_nowait", "appendtext"),
        }
    ),
}  # fmt: skip
_DRAWS = re.compile(
    r"(?:set_|add_|plot|bar|hist|scatter|legend|annotate|text|fill|ax[hv]|clear|cla\b|clf\b|imshow|pie|boxplot|violin|step|stem|"
    r"errorbar|contour|pcolor|tick_params|tight_layout|suptitle|subplots|grid|invert_|twin|remove|colorbar|loglog|semilog|stack)"
)
_TORCH = re.compile(r"[a-z]\w*[a-z]_\Z")


def deeds(call: Called) -> tuple[list[str], list[Value]]:
    """Return what a call would do, as words, and which values it would change in place."""
    said = [words for look in _LOOKS for words in look(call)]
    if not said and (label := label_of(call.meant)) and label not in {SHELL, NETWORK}:
        said = [WORDS[label]]
    return said, list(_changed(call))


def _named(value: Value | None) -> str | None:
    """Return the shown name of a file, or None if it is no file but a buffer or a file opened before."""
    if value is None:
        return ""
    if _BUFFER.match(value.meant) or value.family == "file" or value.meant == "None":
        return None
    return short(text) if (text := value.spelled()) else ""


def _written(value: Value | None, what: str = "a file") -> Iterator[str]:
    if value is not None and value.text and URL.match(value.text):
        yield network(value.text)
    if (name := _named(value)) is not None:
        yield f"writes {name or what}"


def _opens(call: Called) -> Iterator[str]:
    on_path = call.method == "open" and call.owner.family == "path"
    place = 0 if on_path else _OPENS.get(call.meant)
    if place is None:
        return
    mode = call.argument(place, "mode", "flag")
    default = "r+" if call.meant in {"numpy.memmap", "pandas.HDFStore"} else "r"
    text = default if mode is None else mode.text
    if (
        text is None
        or set(text.partition(":")[0]) & set("wax+")
        or (call.meant == "dbm.open" and set(text) & set("cn"))
    ):
        yield from _written(call.owner if on_path else call.argument(0, "file", "filename", "name", "path"))


def _writes(call: Called) -> Iterator[str]:
    if call.meant in _WRITES:
        place, name = _WRITES[call.meant]
        yield from _written(call.argument(place, name, "file", "filename", "path"))
        return
    if call.meant == "sqlite3.connect" or call.meant.endswith(".ArgumentParser"):
        return
    if call.method in _PATH_WRITES and (call.owner.family == "path" or call.method in {"write_text", "write_bytes"}):
        yield from _written(call.owner)
    if call.meant.startswith("tempfile.") and call.method in _TEMPORARY:
        yield "writes a temporary file"
    if call.method in {"write", "writelines", "truncate"} and call.owner.family == "file":
        yield "writes a file"
    if call.method in {"to_sql", "write_database"}:
        table = call.argument(0, "name", "table_name")
        yield (
            f"{CHANGES_DATABASE} (table {short(table.text)})"
            if table and table.spelled() and table.text
            else CHANGES_DATABASE
        )
    found = _METHOD_WRITES.get(call.method)
    if found is None or call.owner is UNKNOWN:
        return
    target = call.argument(found[0], *found[1])
    if target is None and (call.method in _MAY_RETURN or call.method == "save"):
        return
    yield from _written(target, "files" if call.method == "extractall" else "a file")


def _places(call: Called) -> Iterator[str]:
    """Deletes, moves, folders."""
    if call.meant in _DELETES_FILE or call.meant in _DELETES_FOLDER:
        folder = call.meant in _DELETES_FOLDER
        name = _named(call.argument(0, "path"))
        yield f"deletes {name.rstrip('/')}{'/' * folder}" if name else WORDS[DELETES]
    elif call.method in {"unlink", "rmdir", "rmtree"}:
        name = _named(call.owner)
        yield f"deletes {name.rstrip('/')}{'/' * (call.method != 'unlink')}" if name else WORDS[DELETES]
    elif call.meant in _MOVES or (call.method in {"rename", "replace"} and call.owner.family == "path"):
        source = call.argument(0, "src") if call.meant in _MOVES else call.owner
        target = call.argument(1, "dst") if call.meant in _MOVES else call.argument(0, "target")
        old, new = _named(source), _named(target)
        yield f"moves {old} to {new}" if old and new else f"moves {old}" if old else "moves files"
    elif call.meant in _MAKES or (call.method == "mkdir" and call.owner.family == "path"):
        name = _named(call.argument(0, "name", "path") if call.meant in _MAKES else call.owner)
        yield f"makes the folder {name.rstrip('/')}/" if name else "makes a folder"


def _state(call: Called) -> Iterator[str]:
    """The process: exit, folder, environment, settings, variables."""
    if (
        call.meant in EXIT_NAMES
        or call.meant in EXIT_CALLS
        or (call.method in EXIT_ATTRIBUTES and call.owner is not UNKNOWN)
    ):
        yield WORDS[EXITS]
    if call.meant in {"os.chdir", "os.fchdir", "contextlib.chdir"}:
        yield CHANGES_FOLDER
    if _ENVIRONMENT.match(call.meant):
        yield CHANGES_ENVIRONMENT
    if call.meant == "logging.basicConfig" and (file := call.keywords.get("filename")) is not None:
        yield from _written(file)
    if _SETTINGS.match(call.meant):
        yield f"changes settings of {call.meant.partition('.')[0]}"
    if call.meant in {"globals().clear", "get_ipython().reset", "get_ipython().user_ns.clear"}:
        yield CLEARS


def _outside(call: Called) -> Iterator[str]:
    """Shell commands with their text, addresses, databases."""
    label = label_of(call.meant)
    if call.meant in {"?requests.head", "?requests.get"} and not call.keywords and not any(_says(v) for v in call.args):
        return  # a table of that name: requests.head(5)
    if label == SHELL:
        text = " ".join(part for value in call.given for part in _words(value))
        yield from said_of_command(text)
    elif (label == NETWORK and not _PREPARES.search(call.meant)) or (
        READER.search(call.method) and any(URL.match(v.text or "") for v in call.given)
    ):
        yield network(next((value.text for value in call.given if URL.match(value.text or "")), None))
    if call.method in _RUNS_SQL and call.given and (text := call.given[0].text):
        yield from said_of_sql(text)
    if call.method in _DATABASE and call.owner is not UNKNOWN and call.method != "write_database":
        yield CHANGES_DATABASE


def _says(value: Value) -> bool:
    """Whether a value is, or may be, a text."""
    return value.meant == "str" or value.family != "plain"


def _words(value: Value) -> list[str]:
    if value.items:
        return [word for item in value.items for word in _words(item)]
    return [value.text] if value.text else []


_LOOKS: tuple[Callable[[Called], Iterator[str]], ...] = (_opens, _writes, _places, _state, _outside)


def _changed(call: Called) -> Iterator[Value]:
    if call.meant in _CHANGES_FIRST and call.args:
        yield call.args[0]
    if call.method == "shuffle" and call.args and call.meant not in _CHANGES_FIRST:
        yield call.args[0]
    if (out := call.keywords.get("out")) is not None:
        yield out
    inplace = next((call.keywords[key] for key in ("inplace", "in_place") if key in call.keywords), None)
    if inplace is not None and inplace.text != "False":
        yield call.args[0] if _is_library(call.owner) and call.args else call.owner
    elif _changes_owner(call):
        yield call.owner
    elif call.args and _of_class(call):
        yield call.args[0]


def _changes_owner(call: Called) -> bool:
    owner, method = call.owner, call.method
    if not method or owner.family in {"plain", "path", "file"} or (owner.family == "" and _is_library(owner)):
        return (
            owner.meant in {"sys.path", "sys.modules", "matplotlib.rcParams", "matplotlib.pyplot.rcParams"}
            and method in _IN_PLACE[""]
        )
    if owner.family == "matplotlib":
        return bool(_DRAWS.match(method))
    if owner.meant.startswith("torch.") and _TORCH.match(method):
        return True
    family = "" if owner.family in CONTAINERS else owner.family
    return method in _IN_PLACE.get(family, frozenset())


def _of_class(call: Called) -> bool:
    """Whether it is a method that changes its object, called by its class: `np.ndarray.sort(arr)`."""
    module, _, name = call.owner.meant.rpartition(".")
    if not _is_library(call.owner) or not (name[:1].isupper() or name == "ndarray"):
        return False
    return call.method in _IN_PLACE.get(module.partition(".")[0], frozenset())


def _is_library(owner: Value) -> bool:
    """Whether it is a module, class or function rather than an object of one."""
    return bool(owner.meant) and not owner.meant.endswith(")") and not owner.meant.startswith("?")
