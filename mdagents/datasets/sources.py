"""Sources of the data sets: pinned files and their conversion to `test.jsonl` and `train.jsonl`.

A data set is one row: of `SOURCES` if its files are pinned, else of `BY_HAND`.

Each SHA-256 of a text data set was published identically by several independent projects that pin
the same commit; those of data sets with pictures are on the Hub's own pages of the file at that
commit. None was computed by us. Where a data set with pictures has no published SHA-256, a download
is compared with the checksum that the Hub reports for the pinned commit, and says so. Text files
that could not be pinned are not downloaded; users supply them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from mdagents.datasets import conversion, picture_conversion
from mdagents.datasets.medmcqa import Counting


class Host(StrEnum):
    """The host that serves a file."""

    HUGGING_FACE = "huggingface"
    GITHUB = "github"


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A published file, pinned by commit and checksum."""

    repo_id: str
    """Repository, `owner/name`; on the Hub, a dataset repository."""
    revision: str
    """Commit as 40 hexadecimal digits, because a branch could change."""
    path_in_repo: str
    sha256: str = ""
    """SHA-256 of the file as 64 hexadecimal digits; empty if none was published: the file is
    compared with the checksum that the Hub reports for that commit."""
    host: Host = Host.HUGGING_FACE


@dataclass(frozen=True, slots=True)
class About:
    """License, citation and notes of a data set."""

    licence: str
    """Terms of use, and who states them."""
    citation: str
    """Publication to cite."""
    note: str = ""
    """Peculiarities of this copy; empty without any."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a data set and the pinned files from which it is built."""

    target: str
    """File name inside `data/{name}/`."""
    records: int | None
    """Number of published records; None if it is not known before the download."""
    files: tuple[PinnedFile, ...]
    """Files to download."""
    about: About
    convert: Callable[[Sequence[Path]], conversion.Records] | None = None
    """Function that reads the questions from the files; None keeps the only file as published."""
    counting: Counting | None = None
    """Option numbering of MedMCQA records; None for other data sets."""
    pictures: picture_conversion.Convert | None = None
    """Function that reads the questions and their pictures; None for questions of text."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """A data set whose files are not pinned and must be supplied by the user."""

    instructions: str
    """One-line instructions on which file to get from which site, and where to put it."""
    about: About
    only: Mapping[str, str] = field(default_factory=dict)
    """Field -> value of the wanted records; `{split}` is replaced by the split."""


_MEDQA = About(
    licence=(
        "CC BY 4.0, as the card of GBaker/MedQA-USMLE-4-options says "
        "(the authors' own repository, jind11/MedQA, is under the MIT license)"
    ),
    citation=(
        "Di Jin, Eileen Pan, Nassim Oufattole, Wei-Hung Weng, Hanyi Fang, Peter Szolovits. "
        "What Disease does this Patient Have? A Large-scale Open Domain Question Answering Dataset "
        "from Medical Exams. arXiv:2009.13081, 2020."
    ),
    note=(
        "a third party's copy of the authors' files, USMLE questions with 4 options; "
        "records carry no id, questions are numbered by line"
    ),
)
_MEDMCQA = About(
    licence=(
        "MIT, as the authors' repository medmcqa/medmcqa says; "
        "Apache 2.0, as the card of openlifescienceai/medmcqa says"
    ),
    citation=(
        "Ankit Pal, Logesh Kumar Umapathi, Malaikannan Sankarasubbu. MedMCQA: A Large-scale "
        "Multi-Subject Multi-Choice Dataset for Medical domain Question Answering. CHIL 2022. "
        "arXiv:2203.14371."
    ),
    note="the answers of its test split are withheld: test.jsonl is its validation split",
)
_PUBMEDQA = About(
    licence="MIT, as the authors' repository pubmedqa/pubmedqa says",
    citation=(
        "Qiao Jin, Bhuwan Dhingra, Zhengping Liu, William Cohen, Xinghua Lu. PubMedQA: A Dataset "
        "for Biomedical Research Question Answering. EMNLP-IJCNLP 2019. arXiv:1909.06146."
    ),
    note="PQA-L: 500 test questions as the authors split them, the other 500 as train",
)
_MMLU = About(
    licence="MIT, as the card of cais/mmlu and the authors' repository hendrycks/test say",
    citation=(
        "Dan Hendrycks, Collin Burns, Steven Basart, Andy Zou, Mantas Mazeika, Dawn Song, Jacob "
        "Steinhardt. Measuring Massive Multitask Language Understanding. ICLR 2021. "
        "arXiv:2009.03300."
    ),
    note=(
        f"of 57 subjects the {len(conversion.MMLU_SUBJECTS)} medical ones; train is its dev split"
    ),
)
_MMLU_PRO = About(
    licence="MIT, as the card of TIGER-Lab/MMLU-Pro says",
    citation=(
        "Yubo Wang, Xueguang Ma, Ge Zhang, et al. MMLU-Pro: A More Robust and Challenging "
        "Multi-Task Language Understanding Benchmark. NeurIPS 2024. arXiv:2406.01574."
    ),
    note="of 14 categories only health; train is its validation split",
)


def _medqa(split: str, sha256: str, records: int) -> Source:
    pinned = PinnedFile(
        "GBaker/MedQA-USMLE-4-options",
        "0fb93dd23a7339b6dcd27e241cb9b5eca62d4d18",
        f"phrases_no_exclude_{split}.jsonl",
        sha256,
    )
    return Source(f"{split}.jsonl", records, (pinned,), _MEDQA)


def _medmcqa(target: str, split: str, sha256: str, records: int) -> Source:
    pinned = PinnedFile(
        "openlifescienceai/medmcqa",
        "91c6572c454088bf71b679ad90aa8dffcd0d5868",
        f"data/{split}-00000-of-00001.parquet",
        sha256,
    )
    counting = Counting(0, f"as {pinned.repo_id} does")
    return Source(target, records, (pinned,), _MEDMCQA, conversion.parquet_rows, counting)


def _mmlu_pro(target: str, split: str, sha256: str, records: int) -> Source:
    pinned = PinnedFile(
        "TIGER-Lab/MMLU-Pro",
        "b189ec765aa7ed75c8acfea42df31fdae71f97be",
        f"data/{split}-00000-of-00001.parquet",
        sha256,
    )
    return Source(target, records, (pinned,), _MMLU_PRO, conversion.mmlu_pro_health)


def _of_pubmedqa(path_in_repo: str, sha256: str) -> PinnedFile:
    commit = "1cbae8e92f72f20c8d3747cbb3bf5bc53554d997"
    return PinnedFile("pubmedqa/pubmedqa", commit, path_in_repo, sha256, Host.GITHUB)


_PUBMEDQA_FILES = (
    _of_pubmedqa(
        "data/ori_pqal.json", "8b3276be8942ebbd77f3ddcda12c1749bf0e490045a736fd8438ee40cf37a41d"
    ),
    _of_pubmedqa(
        "data/test_ground_truth.json",
        "939fe566f09017d13b1ca64d2ddfee0bc2374b366048152997669cccedc44d51",
    ),
)
_MMLU_FILES = (
    PinnedFile(
        "cais/mmlu",
        "c30699e8356da336a370243923dbaf21066bb9fe",
        "data.tar",
        "bec563ba4bac1d6aaf04141cd7d1605d7a5ca833e38f994051e818489592989b",
    ),
)


MMMU_SUBJECTS = (
    "Basic_Medical_Science",
    "Clinical_Medicine",
    "Diagnostics_and_Laboratory_Medicine",
    "Pharmacy",
    "Public_Health",
)
"""Medical subjects of MMMU."""

_VQA_RAD = About(
    licence="CC0 1.0, as the card of flaviagiammarino/vqa-rad says",
    citation=(
        "Jason J. Lau, Soumya Gayen, Asma Ben Abacha, Dina Demner-Fushman. A dataset of clinically "
        "generated visual questions and answers about radiology images. Scientific Data 5, 180251, "
        "2018."
    ),
    note="only questions answered by yes or no; a question of the test split may be about a "
    "picture of the train split",
)
_SLAKE = About(
    licence="CC BY 4.0, as the card of BoKelvin/SLAKE says",
    citation=(
        "Bo Liu, Li-Ming Zhan, Li Xu, Lin Ma, Yan Yang, Xiao-Ming Wu. SLAKE: A "
        "Semantically-Labeled Knowledge-Enhanced Dataset for Medical Visual Question Answering. "
        "ISBI 2021. arXiv:2102.09542."
    ),
    note="only English questions answered by yes or no",
)
_PATHVQA = About(
    licence="MIT, as the card of flaviagiammarino/path-vqa says; the pictures are from textbooks "
    "and a digital library, see the paper",
    citation=(
        "Xuehai He, Yichen Zhang, Luntian Mou, Eric Xing, Pengtao Xie. PathVQA: 30000+ Questions "
        "for Medical Visual Question Answering. arXiv:2003.10286, 2020."
    ),
    note="only questions answered by yes or no",
)
_PMC_VQA = About(
    licence="CC BY-SA, as the card of RadGenome/PMC-VQA says; each picture is under the license of "
    "its paper, CC0 or CC BY",
    citation=(
        "Xiaoman Zhang, Chaoyi Wu, Ziheng Zhao, et al. PMC-VQA: Visual Instruction Tuning for "
        "Medical Visual Question Answering. arXiv:2305.10415, 2023."
    ),
    note="questions were generated by a language model; test.jsonl is the part that was checked by "
    "hand (test_clean.csv)",
)
_MEDXPERTQA_MM = About(
    licence="MIT, as the card of TsinghuaC3I/MedXpertQA says",
    citation=(
        "Yuxin Zuo, Shang Qu, Yifei Li, et al. MedXpertQA: Benchmarking Expert-Level Medical "
        "Reasoning and Understanding. ICML 2025. arXiv:2501.18362."
    ),
    note="the part with pictures; train is its dev split",
)
_OMNIMEDVQA = About(
    licence="none is stated for the whole; each part is under the license of its source, see the "
    "card of foreverbeliever/OmniMedVQA",
    citation=(
        "Yutao Hu, Tianbin Li, Quanfeng Lu, et al. OmniMedVQA: A New Large-Scale Comprehensive "
        "Evaluation Benchmark for Medical LVLM. CVPR 2024. arXiv:2402.09181."
    ),
    note="the open part: the pictures of the other part must be asked for at their sources",
)
_MMMU = About(
    licence="Apache 2.0, as the card of MMMU/MMMU says",
    citation=(
        "Xiang Yue, Yuansheng Ni, Kai Zhang, et al. MMMU: A Massive Multi-discipline Multimodal "
        "Understanding and Reasoning Benchmark for Expert AGI. CVPR 2024. arXiv:2311.16502."
    ),
    note="the five medical subjects; the answers of its test split are withheld: test.jsonl is its "
    "validation split, train its dev split",
)


def _vqa_rad(split: str, end: str, sha256: str, records: int) -> Source:
    pinned = PinnedFile(
        "flaviagiammarino/vqa-rad",
        "bcf91e7654fb9d51c8ab6a5b82cacf3fafd2fae9",
        f"data/{split}-00000-of-00001-{end}.parquet",
        sha256,
    )
    convert = picture_conversion.yes_no_rows
    return Source(f"{split}.jsonl", records, (pinned,), _VQA_RAD, pictures=convert)


def _slake(split: str) -> Source:
    repository = "BoKelvin/SLAKE", "a9083ce6c34ac3ffb17671a605962924d8a8f9e9"
    files = (
        PinnedFile(*repository, f"{split}.json"),
        PinnedFile(
            *repository,
            "imgs.zip",
            "44eb7d9214e1ac5b7946e237b669401866df9114fd9a3618c5a84fbffcded0b0",
        ),
    )
    return Source(f"{split}.jsonl", None, files, _SLAKE, pictures=picture_conversion.slake)


def _medxpertqa_mm(target: str, split: str, records: int) -> Source:
    repository = "TsinghuaC3I/MedXpertQA", "f4e6fe7e5a9e13d6c97d7aa2b91cdd8b80c9cc61"
    files = (
        PinnedFile(*repository, f"MM/{split}.jsonl"),
        PinnedFile(*repository, "images.zip"),
    )
    convert = picture_conversion.medxpertqa_mm
    return Source(target, records, files, _MEDXPERTQA_MM, pictures=convert)


def _mmmu(target: str, split: str, records: int) -> Source:
    files = tuple(
        PinnedFile(
            "MMMU/MMMU",
            "98e6ac0cb9b7b2cd2c991b85a50762edc4aedc68",
            f"{subject}/{split}-00000-of-00001.parquet",
        )
        for subject in MMMU_SUBJECTS
    )
    return Source(target, records, files, _MMMU, pictures=picture_conversion.mmmu)


_PATHVQA_TEST = tuple(
    PinnedFile(
        "flaviagiammarino/path-vqa",
        "7568940e604f3e911441b1f6c7aedb5f1c2866bd",
        f"data/test-0000{number}-of-00003-{end}.parquet",
    )
    for number, end in enumerate(("e9adadb4799f44d3", "7ea98873fc919813", "1628308435019820"))
)
_PMC_VQA_AT = "RadGenome/PMC-VQA", "b56ae594f794867893143b337b4118a835794647"
_PMC_VQA_TEST = (
    PinnedFile(*_PMC_VQA_AT, "test_clean.csv"),
    PinnedFile(
        *_PMC_VQA_AT,
        "images.zip",
        "cc9f909d6804d0b58111ec8aa7c7b564eece237f24fdcb701916c47beec8285e",
    ),
)
_OMNIMEDVQA_ZIP = PinnedFile(
    "foreverbeliever/OmniMedVQA",
    "1ba51c28fc0773bdf7efb8396e5bcfd4227e22da",
    "OmniMedVQA.zip",
    "12245e0f99afbc7d6f70e4ca3c2e5a7979a01816cd8159ae34539f4aa76adee0",
)

SOURCES: Mapping[str, tuple[Source, ...]] = MappingProxyType(
    {
        "medqa": (
            _medqa(
                "test", "c3b905ccfa66152dc25afbcb2c10e86c0bdb208824f0658fcdb2c040f60a2beb", 1273
            ),
            _medqa(
                "train", "3a65baf760f17c395058d6699315a7ce8aa767c50cb193fea87ceb94dd790324", 10178
            ),
        ),
        "medmcqa": (
            _medmcqa(
                "test.jsonl",
                "validation",
                "b768a1ea34afc9f80d3106d9b21f80fa8a00ec450a1f6cd641af72ca9e591021",
                4183,
            ),
            _medmcqa(
                "train.jsonl",
                "train",
                "b119434ba551517a6ec0ba1f7e0b4c029165ed284a4704f262ce37c791c493c5",
                182822,
            ),
        ),
        "pubmedqa": (
            Source(
                "test.jsonl",
                500,
                _PUBMEDQA_FILES,
                _PUBMEDQA,
                conversion.pubmedqa_test,
            ),
            Source(
                "train.jsonl",
                500,
                _PUBMEDQA_FILES,
                _PUBMEDQA,
                conversion.pubmedqa_train,
            ),
        ),
        "mmlu": (
            Source("test.jsonl", 1089, _MMLU_FILES, _MMLU, conversion.mmlu_test),
            Source("train.jsonl", 30, _MMLU_FILES, _MMLU, conversion.mmlu_dev),
        ),
        "vqa-rad": (
            _vqa_rad(
                "test",
                "e5bc3d208bb4deeb",
                "eb520bdab1116dd4f420120da19049d2315389fa126d031f65ec42e153264ea7",
                451,
            ),
            _vqa_rad(
                "train",
                "eb8844602202be60",
                "b07c3441467b99060e5ec412ddd05be06f86f01f23bfa3debfbbcab47874a06e",
                1793,
            ),
        ),
        "slake": (_slake("test"), _slake("train")),
        "pathvqa": (
            Source(
                "test.jsonl",
                6719,
                _PATHVQA_TEST,
                _PATHVQA,
                pictures=picture_conversion.yes_no_rows,
            ),
        ),
        "pmc-vqa": (
            Source(
                "test.jsonl", 2000, _PMC_VQA_TEST, _PMC_VQA, pictures=picture_conversion.pmc_vqa
            ),
        ),
        "medxpertqa-mm": (
            _medxpertqa_mm("test.jsonl", "test", 2000),
            _medxpertqa_mm("train.jsonl", "dev", 5),
        ),
        "omnimedvqa": (
            Source(
                "test.jsonl",
                None,
                (_OMNIMEDVQA_ZIP,),
                _OMNIMEDVQA,
                pictures=picture_conversion.omnimedvqa,
            ),
        ),
        "mmmu-medical": (
            _mmmu("test.jsonl", "validation", 150),
            _mmmu("train.jsonl", "dev", 25),
        ),
        "mmlu-pro": (
            _mmlu_pro(
                "test.jsonl",
                "test",
                "0e24a191921c2f453518a537a8b2117bd137e7714d4ef1565e9ba06c1ecb9ad8",
                818,
            ),
            _mmlu_pro(
                "train.jsonl",
                "validation",
                "139423c23722e480c807ac4a191409a710cfce4eba744c1d641cf88e730e2078",
                5,
            ),
        ),
    }
)
"""Name of a data set -> its files, the test split first."""


def published_size(name: str) -> int | None:
    """Return the published number of questions of a data set; None if it is not known.

    Args:
        name: Name as used by runs: `medqa`, or `medqa-train` for the train split.
    """
    sizes = {
        known if source.target == "test.jsonl" else f"{known}-{Path(source.target).stem}": (
            source.records
        )
        for known, sources in SOURCES.items()
        for source in sources
    }
    return sizes.get(name)


_MEDAGENTSBENCH = {
    "afrimedqa": "AfrimedQA",
    "medbullets": "MedBullets",
    "medexqa": "MedExQA",
    "medmcqa": "MedMCQA",
    "medqa": "MedQA",
    "medxpertqa-r": "MedXpertQA-R",
    "medxpertqa-u": "MedXpertQA-U",
    "mmlu": "MMLU",
    "mmlu-pro": "MMLU-Pro",
    "pubmedqa": "PubMedQA",
}
"""Name in the GitHub repository -> name of the folder on the Hub."""


def _medagentsbench(name: str, folder: str) -> ByHand:
    return ByHand(
        f"download {folder}/test_hard-00000-of-00001.parquet of "
        "https://huggingface.co/datasets/super-dainiu/medagents-benchmark, or "
        f"data/{name}/test_hard.jsonl of https://github.com/gersteinlab/medagents-benchmark, then: "
        f"python -m mdagents data download medagentsbench/{name}_hard --from FILE",
        About(
            "Apache 2.0, as the repository gersteinlab/medagents-benchmark says; the questions are "
            f"under the terms of {folder}",
            "Xiangru Tang, Daniel Shao, Jiwoong Sohn, et al. MedAgentsBench: Benchmarking Thinking "
            "Models and Agent Frameworks for Complex Medical Reasoning. arXiv:2503.07459, 2025.",
            "a selection of questions that most models get wrong: what holds there need not hold "
            "elsewhere",
        ),
    )


BY_HAND: Mapping[str, ByHand] = MappingProxyType(
    {
        "medqa_5options": ByHand(
            "take data_clean.zip that https://github.com/jind11/MedQA links to and put "
            "questions/US/test.jsonl and train.jsonl out of it into {folder}",
            About("MIT, as the authors' repository jind11/MedQA says", _MEDQA.citation),
        ),
        "medbullets": ByHand(
            "download medbullets/medbullets_op4.csv (or _op5.csv) of "
            "https://github.com/HanjieChen/ChallengeClinicalQA, then: "
            "python -m mdagents data download medbullets --from medbullets_op4.csv",
            About(
                "none is stated; the questions are those of https://step2.medbullets.com",
                "Hanjie Chen, Zhouxiang Fang, Yash Singla, Mark Dredze. Benchmarking Large "
                "Language Models on Answering and Explaining Challenging Medical Questions. "
                "NAACL 2025. arXiv:2402.18060.",
            ),
        ),
        "medxpertqa": ByHand(
            "take Text/test.jsonl of https://huggingface.co/datasets/TsinghuaC3I/MedXpertQA as "
            "{folder}/test.jsonl and Text/dev.jsonl as {folder}/train.jsonl, or give "
            "eval/data/medxpertqa/input/medxpertqa_text_input.jsonl of "
            "https://github.com/TsinghuaC3I/MedXpertQA with --from",
            About(
                "MIT, as the card of TsinghuaC3I/MedXpertQA says",
                "Yuxin Zuo, Shang Qu, Yifei Li, et al. MedXpertQA: Benchmarking Expert-Level "
                "Medical Reasoning and Understanding. ICML 2025. arXiv:2501.18362.",
            ),
        ),
        "medexqa": ByHand(
            "download the five tables in test/ (for --split train, in dev/) of "
            "https://huggingface.co/datasets/bluesky333/MedExQA, then: "
            "python -m mdagents data download medexqa --from test/*.tsv",
            About(
                "none is stated in the authors' repository, knowlab/MedExQA; see the card of "
                "bluesky333/MedExQA",
                "Yunsoo Kim, Jinge Wu, Yusuf Abdulle, Honghan Wu. MedExQA: Medical Question "
                "Answering Benchmark with Multiple Explanations. BioNLP 2024. arXiv:2406.06331.",
                "questions are numbered within their specialty",
            ),
        ),
        "afrimedqa": ByHand(
            "download the table (afri_med_qa_15k_v2.5_phase_2_15275.csv) of "
            "https://huggingface.co/datasets/intronhealth/afrimedqa_v2, then: "
            "python -m mdagents data download afrimedqa --from FILE",
            About(
                "CC BY-NC-SA 4.0, as the authors' repository intron-innovation/AfriMed-QA says",
                "Tobi Olatunji, Charles Nimo, Abraham Owodunni, et al. AfriMed-QA: A Pan-African, "
                "Multi-Specialty, Medical Question-Answering Benchmark Dataset. ACL 2025. "
                "arXiv:2411.15640.",
                "multiple choice with one right option, of the split that is asked for",
            ),
            {"split": "{split}"},
        ),
        "hle": ByHand(
            "download data/test-00000-of-00001.parquet of https://huggingface.co/datasets/cais/hle "
            "(its authors ask for your consent first), then: "
            "python -m mdagents data download hle --from test-00000-of-00001.parquet",
            About(
                "MIT, as the card of cais/hle says; its authors ask not to publish its questions",
                "Long Phan, Alice Gatti, Ziwen Han, et al. Humanity's Last Exam. 2025. "
                "arXiv:2501.14249.",
                "of its category Biology/Medicine the questions with options and without images",
            ),
            {"category": "Biology/Medicine"},
        ),
        **{
            f"medagentsbench/{name}_hard": _medagentsbench(name, folder)
            for name, folder in _MEDAGENTSBENCH.items()
        },
    }
)
"""Name of a data set -> how to obtain it by hand."""

_OF_THIS_PROJECT = "MDAgents-bench, the repository of this program."
SHIPPED: Mapping[str, About] = MappingProxyType(
    {
        "medqa-sample": About(
            "MIT, like the project",
            _OF_THIS_PROJECT,
            "30 test questions and 6 exemplars, written by a language model and not reviewed by "
            "clinicians: to try the program, not to report a score",
        ),
        "triage_vignettes": About(
            "MIT, like the project",
            _OF_THIS_PROJECT,
            "120 patient messages in English and Vietnamese, written with a language model and not "
            "reviewed by clinicians",
        ),
        "vqa-sample": About(
            "MIT, like the project; each picture is under its own terms, see SOURCE.txt beside it",
            _OF_THIS_PROJECT,
            "12 questions with pictures, to try whether a model gets its pictures",
        ),
    }
)
"""Name of a data set that comes with the program -> its license and notes."""


def about_of(name: str) -> About | None:
    """Return license, citation and notes of a data set; None for one that is not known.

    Args:
        name: Name as used by runs: `medqa`, or `medqa-train` for the train split.
    """
    base = name.removesuffix("-train")
    if base in SHIPPED:
        return SHIPPED[base]
    if base in SOURCES:
        return SOURCES[base][0].about
    return BY_HAND[base].about if base in BY_HAND else None


KNOWN = (*SOURCES, *BY_HAND)
"""Names of the data sets for which `mdagents data download` has files or instructions."""

FETCHED_WITH_TRAIN = tuple(
    name
    for name, sources in SOURCES.items()
    if any(source.target == "train.jsonl" for source in sources)
)
"""Data sets for which `mdagents data download` fetches a train split."""
